import { buildConnector } from './undici.ts'
import { Failure } from '../core/index.ts'
import { readBounded, readBoundedAsync, readCertificates, readPrivateKey } from '../files/index.ts'
import { type Connect, promised } from './connector.ts'

/** TLS to a backend (`targetTls` of a route), with paths of PEM files. */
export interface TargetTls {
  /** CA certificates that replace the system's. */
  readonly caCertPath?: string | undefined
  readonly clientCertFile?: string | undefined
  readonly clientKeyFile?: string | undefined
  /** Name for SNI and for the certificate check instead of the target's host. */
  readonly serverName?: string | undefined
  /** Accepts any certificate. Default false. */
  readonly insecureSkipVerify?: boolean | undefined
}

const MAX_PEM_BYTES = 1024 * 1024
const HIGH_WATER_BYTES = 16 * 1024

type Material = Readonly<Record<'ca' | 'cert' | 'key', Buffer | undefined>>

/** Checks of each file's content. */
const CHECKS: Readonly<Record<keyof Material, (content: Buffer) => unknown>> = {
  ca: readCertificates,
  cert: readCertificates,
  key: readPrivateKey,
}

/** Throws `UnusableFile` for a missing or invalid file: TLS itself accepts any bytes as roots. */
const readMaterial = (tls: TargetTls): Material => {
  const read = (path: string | undefined, name: keyof Material): Buffer | undefined => {
    if (path === undefined) return undefined
    try {
      const content = readBounded(path, MAX_PEM_BYTES)
      CHECKS[name](content)
      return content
    } catch (cause) {
      throw new UnusableFile(path, { cause })
    }
  }
  return {
    ca: read(tls.caCertPath, 'ca'),
    cert: read(tls.clientCertFile, 'cert'),
    key: read(tls.clientKeyFile, 'key'),
  }
}

/** The message is the path of the file. */
class UnusableFile extends Error {}

/** The same without blocking, while requests are served. */
const readMaterialAgain = async (tls: TargetTls): Promise<Material> => {
  const read = (path: string | undefined): Promise<Buffer | undefined> =>
    path === undefined ? Promise.resolve(undefined) : readBoundedAsync(path, MAX_PEM_BYTES)
  const [ca, cert, key] = await Promise.all([tls.caCertPath, tls.clientCertFile, tls.clientKeyFile].map(read))
  return { ca, cert, key }
}

const isSame = (left: Material, right: Material): boolean =>
  (['ca', 'cert', 'key'] as const).every((name) => {
    const [one, other] = [left[name], right[name]]
    return one === undefined || other === undefined ? one === other : one.equals(other)
  })

/**
 * Connects to a backend with its TLS settings. Files are read now and before each new connection, so that renewed
 * certificates apply; unusable ones keep the old. Throws `Failure` config_error for a file that is unusable at the
 * start.
 */
export const createTargetConnect = (
  tls: TargetTls,
  options: { readonly connectMs: number; readonly allowH2: boolean },
): Connect => {
  const connectWith = ({ ca, cert, key }: Material): Connect => {
    const settings = {
      timeout: options.connectMs,
      allowH2: options.allowH2,
      rejectUnauthorized: tls.insecureSkipVerify !== true,
      // A peer that does not read, or is not read, buffers little; undici passes this to the socket.
      highWaterMark: HIGH_WATER_BYTES,
      // An upgraded connection may be half-closed; undici closes the others.
      allowHalfOpen: !options.allowH2,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    }
    return promised(buildConnector(settings))
  }
  let material: Material
  try {
    material = readMaterial(tls)
  } catch (cause) {
    const file = cause instanceof UnusableFile ? cause.message : 'one'
    throw new Failure('config_error', { detail: `a file of targetTls is unusable: ${file}`, cause })
  }
  let connect = connectWith(material)
  const look = async (): Promise<void> => {
    try {
      const now = await readMaterialAgain(tls)
      if (isSame(now, material)) return
      for (const name of ['ca', 'cert', 'key'] as const) if (now[name] !== undefined) CHECKS[name](now[name])
      connect = connectWith(now)
      material = now
    } catch {
      // The old material remains in use until the file is readable.
    }
  }
  // Concurrent connections share one read.
  let looking: Promise<void> | undefined
  const refresh = (): Promise<void> => (looking ??= look().finally(() => (looking = undefined)))
  const hasFiles = [tls.caCertPath, tls.clientCertFile, tls.clientKeyFile].some((path) => path !== undefined)
  const { serverName } = tls
  return async (target, signal) => {
    if (hasFiles) await refresh()
    return connect(serverName === undefined ? target : { ...target, servername: serverName }, signal)
  }
}
