import { causeOf, type Clock, type Log, type Metrics, Secret } from '../../core/index.ts'
import { isNotFound, type KubeClient, KubeError, type KubeObject, systemTimers, type Timers } from '../../kube/index.ts'
import { CLUSTER_TYPES } from '../kinds.ts'
import {
  type Certificate,
  DEFAULT_LIFETIME_MS,
  isDue,
  isFor,
  issueCertificates,
  mergeBundles,
  readCertificate,
} from './certificates.ts'

export interface CertificateKeeperOptions {
  readonly client: KubeClient
  readonly namespace: string
  /** Name of the Secret, and of both webhook configurations. */
  readonly secretName: string
  readonly configurationName: string
  /** DNS names that the API server connects to. */
  readonly names: readonly string[]
  /** Milliseconds. Default 90 days. */
  readonly lifetimeMs?: number | undefined
  /** The leader renews and writes configurations; other replicas only if it does not. */
  readonly isLeader: () => boolean
  readonly onCertificate: (certificate: Certificate) => void
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly timers?: Timers
}

export interface CertificateKeeper {
  /** True while the served certificate is valid. */
  readonly isValid: boolean
  /** Checks immediately, after leadership was acquired. */
  look(): Promise<void>
  close(): void
}

interface Stored {
  readonly object: KubeObject
  /** Undefined if the Secret has no usable certificate. */
  readonly certificate: Certificate | undefined
  readonly caBundle: string
}

/** Metric: expiry of the webhook certificate. */
export const certificateEnds = (metrics: Metrics) =>
  metrics
    .gauge('extauth_operator_webhook_certificate_end_seconds', 'Expiry of the webhook serving certificate, Unix time.')
    .with()

/** Milliseconds between checks of the Secret; a tenth of short lifetimes. */
const LOOK_MS = 30_000
/** Milliseconds until the first retry; doubled with each failure up to the usual interval. */
const FIRST_RETRY_MS = 1_000
/** Milliseconds for API servers to load a new bundle before a certificate that it signs is served. */
const SPREAD_MS = 3_000

/**
 * Keeps a self-signed serving certificate in a Secret shared by all replicas, and its CA in both webhook
 * configurations. At a renewal the configurations trust the new CA beside the old one first; only then the new
 * certificate is served.
 */
export async function keepCertificate(options: CertificateKeeperOptions): Promise<CertificateKeeper> {
  const { client, namespace, secretName, clock, log, lifetimeMs = DEFAULT_LIFETIME_MS, timers = systemTimers } = options
  const ends = certificateEnds(options.metrics)
  const lookMs = Math.min(LOOK_MS, lifetimeMs / 10)
  let current: Certificate | undefined
  let isClosed = false
  let cancel = (): void => {}
  let looking: Promise<void> = Promise.resolve()
  let failures = 0

  const use = (certificate: Certificate): void => {
    if (current?.cert === certificate.cert) return
    current = certificate
    ends.set(Math.round(certificate.notAfterMs / 1000))
    options.onCertificate(certificate)
  }

  const read = async (): Promise<Stored | undefined> => {
    try {
      return storedOf(await client.get(CLUSTER_TYPES.Secret, namespace, secretName))
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  const renew = async (before: Stored | undefined): Promise<Stored> => {
    const issued = await issueCertificates({ names: options.names, nowMs: clock.now(), lifetimeMs })
    const caBundle = mergeBundles(issued.caBundle, before?.caBundle ?? '', clock.now())
    if (before !== undefined) {
      await trust(client, options.configurationName, caBundle)
      await new Promise<void>((resolve) => timers.after(Math.min(SPREAD_MS, lifetimeMs / 20), resolve))
    }
    const object = secretObject(
      namespace,
      secretName,
      issued.serving,
      caBundle,
      before?.object.metadata.resourceVersion,
    )
    const written =
      before === undefined
        ? await client.create(CLUSTER_TYPES.Secret, object)
        : await client.update(CLUSTER_TYPES.Secret, object)
    log.info({ ends: new Date(issued.serving.notAfterMs).toISOString() }, 'webhook certificate issued')
    return { object: written, certificate: issued.serving, caBundle }
  }

  const isPast = ({ certificate }: Stored): boolean => {
    if (certificate === undefined || isDue(certificate, clock.now(), options.isLeader())) return true
    // Certificate for other names: only the leader renews, or two versions would alternate.
    return options.isLeader() && !isFor(certificate, options.names)
  }

  const lookOnce = async (): Promise<void> => {
    let stored = await read()
    if (stored === undefined || isPast(stored)) {
      try {
        stored = await renew(stored)
      } catch (error) {
        // Another replica was faster; its certificate is used.
        if (!(error instanceof KubeError && error.status === 409)) throw error
        stored = await read()
      }
    }
    if (stored?.certificate === undefined) return
    if (options.isLeader()) await trust(client, options.configurationName, stored.caBundle)
    use(stored.certificate)
  }

  const look = (): Promise<void> => {
    looking = looking.then(lookOnce).then(
      () => void (failures = 0),
      (error: unknown) => {
        failures++
        const status = error instanceof KubeError ? error.status : undefined
        log.warn(
          { secret: `${namespace}/${secretName}`, status, cause: causeOf(error) },
          'webhook certificate check failed',
        )
      },
    )
    return looking
  }
  const schedule = (): void => {
    if (isClosed) return
    const pauseMs = failures === 0 ? lookMs : Math.min(lookMs, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10))
    cancel = timers.after(pauseMs, () => void look().then(schedule))
  }
  await look()
  schedule()
  return {
    get isValid() {
      return current !== undefined && clock.now() >= current.notBeforeMs && clock.now() < current.notAfterMs
    },
    look,
    close() {
      isClosed = true
      cancel()
    },
  }
}

/** Writes a changed bundle into both configurations; a missing configuration is skipped. */
async function trust(client: KubeClient, name: string, caBundle: string): Promise<void> {
  const encoded = Buffer.from(caBundle).toString('base64')
  for (const type of [CLUSTER_TYPES.ValidatingWebhookConfiguration, CLUSTER_TYPES.MutatingWebhookConfiguration]) {
    let object: KubeObject
    try {
      object = await client.get(type, undefined, name)
    } catch (error) {
      if (isNotFound(error)) continue
      throw error
    }
    const webhooks = (object['webhooks'] ?? []) as { readonly clientConfig: { readonly caBundle?: string } }[]
    if (webhooks.every(({ clientConfig }) => clientConfig.caBundle === encoded)) continue
    const trusting = webhooks.map((webhook) =>
      Object.assign({}, webhook, { clientConfig: { ...webhook.clientConfig, caBundle: encoded } }),
    )
    await client.update(type, { ...object, webhooks: trusting })
  }
}

function storedOf(object: KubeObject): Stored {
  const data = (object.data ?? {}) as Readonly<Record<string, string>>
  const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString('utf8')
  const certificate = readCertificate(text('tls.crt'), new Secret(text('tls.key')))
  return { object, certificate, caBundle: text('ca.crt') }
}

function secretObject(
  namespace: string,
  name: string,
  { cert, key }: Certificate,
  caBundle: string,
  resourceVersion?: string,
): KubeObject {
  const encoded = (text: string): string => Buffer.from(text).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: {
      name,
      namespace,
      labels: { 'app.kubernetes.io/name': 'mcp-extauth', 'app.kubernetes.io/component': 'operator' },
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    data: { 'tls.crt': encoded(cert), 'tls.key': encoded(key.reveal()), 'ca.crt': encoded(caBundle) },
  }
}
