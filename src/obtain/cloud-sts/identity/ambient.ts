import { createRequire } from 'node:module'
import type * as Providers from '@aws-sdk/credential-providers'
import type { parseKnownFiles } from '@smithy/core/config'
import { causeOf, Failure, OutboundError, Secret } from '../../../core/index.ts'
import { type AmbientName, type AmbientSpec, chainOf } from '../../../resources/index.ts'
import type { AwsKeys } from './keys.ts'
import type { RoleAssumers } from './role-assumers.ts'

// Loaded with the first config that needs it.
const load = createRequire(import.meta.url)

/** Milliseconds for one answer of a metadata service, which is next door. */
const NEXT_DOOR_MS = 1_000
/** All of a fetch. */
const DEADLINE_MS = 5_000

type Env = Readonly<Record<string, string | undefined>>
type Found = Awaited<ReturnType<ReturnType<typeof Providers.fromEnv>>>

export interface AmbientDeps {
  /** What the SDK's providers read as `process.env`. */
  readonly env: Env
  /** STS for the places that are only a token or a role of a profile. */
  readonly assumers: RoleAssumers
}

interface Place {
  /** Whether the environment points there; undefined where only asking tells. */
  readonly isSet: (env: Env) => boolean | undefined
  readonly ask: (providers: typeof Providers, context: AmbientDeps & AmbientSpec) => Promise<Found>
}

/** The SDK says things on the console otherwise. */
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const nextDoor = { timeout: NEXT_DOOR_MS, maxRetries: 1, logger: quiet }

/** Where a container asks, and what it shows. */
function endpointOf(env: Env): Parameters<typeof Providers.fromHttp>[0] {
  const option = (name: string, variable: string) => (env[variable] ? { [name]: env[variable] } : {})
  return {
    ...nextDoor,
    ...option('awsContainerCredentialsRelativeUri', 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'),
    ...option('awsContainerCredentialsFullUri', 'AWS_CONTAINER_CREDENTIALS_FULL_URI'),
    ...option('awsContainerAuthorizationToken', 'AWS_CONTAINER_AUTHORIZATION_TOKEN'),
    ...option('awsContainerAuthorizationTokenFile', 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'),
  }
}

const PLACES: Readonly<Record<AmbientName, Place>> = {
  environment: {
    isSet: (env) => Boolean(env['AWS_ACCESS_KEY_ID']) && Boolean(env['AWS_SECRET_ACCESS_KEY']),
    ask: ({ fromEnv }) => fromEnv()(),
  },
  webIdentityFile: {
    isSet: (env) => Boolean(env['AWS_WEB_IDENTITY_TOKEN_FILE']) && Boolean(env['AWS_ROLE_ARN']),
    ask: ({ fromTokenFile }, { assumers }) =>
      fromTokenFile({ roleAssumerWithWebIdentity: assumers.withWebIdentity, logger: quiet })(),
  },
  podIdentity: {
    isSet: (env) =>
      Boolean(env['AWS_CONTAINER_CREDENTIALS_FULL_URI']) &&
      Boolean(env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']) &&
      !env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'],
    ask: ({ fromHttp }, { env }) => fromHttp(endpointOf(env))(),
  },
  container: {
    isSet: (env) =>
      Boolean(env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']) || Boolean(env['AWS_CONTAINER_CREDENTIALS_FULL_URI']),
    ask: ({ fromHttp }, { env }) => fromHttp(endpointOf(env))(),
  },
  instance: {
    isSet: (env) => (isTrue(env['AWS_EC2_METADATA_DISABLED']) ? false : undefined),
    // One of its own each time: the SDK's remembers a token that was late as the old protocol, which is never spoken.
    ask: ({ fromInstanceMetadata }) => fromInstanceMetadata({ ...nextDoor, ec2MetadataV1Disabled: true })(),
  },
  profile: {
    isSet: () => undefined,
    async ask({ fromIni }, { env, profile, assumers }) {
      const name = profile ?? (env['AWS_PROFILE'] || 'default')
      await refuseLogins(name)
      return fromIni({
        profile: name,
        ignoreCache: true,
        roleAssumer: assumers.withKeys,
        roleAssumerWithWebIdentity: assumers.withWebIdentity,
        logger: quiet,
      })()
    },
  },
}

const isTrue = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== 'false'

/** Where the identity was found, as well. */
export interface Ambient {
  fetch(): Promise<AwsKeys>
  /** The place that answered first; the others are not asked after. */
  readonly answered: AmbientName | undefined
}

/**
 * The identity that the process finds around it (`@aws-sdk/credential-providers`): the places of the chain in their order,
 * and no others. A place that the environment points to and that fails ends the search, as in the SDKs: what comes behind it
 * is somebody else. Once a place has answered it is the only one. `fetch` throws `aws_identity_unavailable`, and what STS
 * says.
 */
export function createAmbient(spec: AmbientSpec, deps: AmbientDeps): Ambient {
  let answered: AmbientName | undefined
  const context = { ...spec, ...deps }

  async function search(): Promise<AwsKeys> {
    const providers = load('@aws-sdk/credential-providers') as typeof Providers
    const places = answered === undefined ? chainOf(spec) : [answered]
    for (const name of places) {
      const { isSet, ask } = PLACES[name]
      const set = isSet(deps.env)
      if (set === false) continue
      try {
        const keys = keysFound(await ask(providers, context), name)
        answered = name
        return keys
      } catch (error) {
        if (set === true || name === answered || !isElsewhere(error)) throw failureOf(error, name)
      }
    }
    throw unavailable(`none of ${places.join(', ')} has credentials`)
  }

  return {
    fetch: () => withDeadline(search()),
    get answered() {
      return answered
    },
  }
}

const unavailable = (detail: string, cause?: unknown): Failure =>
  new Failure('aws_identity_unavailable', { detail, ...(cause === undefined ? {} : { cause }) })

/** The SDK's mark of an error after which the next place is asked. */
const isElsewhere = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'tryNextLink' in error && error.tryNextLink === true

function failureOf(error: unknown, name: AmbientName): Failure {
  if (error instanceof Failure) return error
  const why = error instanceof OutboundError ? error.kind : causeOf(error)
  return unavailable(`${name}: ${JSON.stringify(why)}`, error)
}

function keysFound(found: Found, name: AmbientName): AwsKeys {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = found
  const expiresAtMs = endOf(found, expiration)
  if (!accessKeyId || !secretAccessKey || Number.isNaN(expiresAtMs))
    throw unavailable(`${name} gave no usable credentials`)
  return {
    accessKeyId,
    secretAccessKey: new Secret(secretAccessKey),
    sessionToken: sessionToken ? new Secret(sessionToken) : undefined,
    expiresAtMs,
  }
}

/** The SDK goes on with credentials of an instance whose end has passed, and calls another time their end. */
function endOf(found: object, expiration: Date | undefined): number {
  const original = 'originalExpiration' in found ? found.originalExpiration : undefined
  const end = original instanceof Date ? original : expiration
  return end === undefined ? Infinity : end.getTime()
}

/** Profiles of somebody who logs in with a browser are no identity of a server. */
async function refuseLogins(profile: string): Promise<void> {
  const config = load('@smithy/core/config') as { parseKnownFiles: typeof parseKnownFiles }
  const profiles = await config.parseKnownFiles({ ignoreCache: true })
  const seen = new Set<string>()
  for (let name: string | undefined = profile; name !== undefined && !seen.has(name);) {
    seen.add(name)
    const fields: Readonly<Record<string, string | undefined>> = profiles[name] ?? {}
    if (Object.keys(fields).some((field) => field.startsWith('sso_') || field === 'login_session'))
      throw unavailable(`the profile ${JSON.stringify(name)} needs a login in the browser (SSO), which no server has`)
    name = fields['source_profile']
  }
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(unavailable(`no answer within ${DEADLINE_MS / 1000} s`)), DEADLINE_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
