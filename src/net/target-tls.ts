import { buildConnector } from './undici.ts'
import { Failure } from '../core/index.ts'
import { readBounded, readBoundedAsync, readCertificates, readPrivateKey } from '../files/index.ts'
import { type Connect, promised } from './connector.ts'

/** TLS towards a backend (`targetTls` of a route); paths of PEM files. */
export interface TargetTls {
  /** Authorities that replace the system roots. */
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

/** What each file must hold; what it gives is not used. */
const CHECKS: Readonly<Record<keyof Material, (content: Buffer) => unknown>> = {
  ca: readCertificates,
  cert: readCertificates,
  key: readPrivateKey,
}

/** Throws `UnusableFile` for one that is missing, or does not hold what it should: TLS itself takes anything as roots. */
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

/** The same while requests are served, which wait for no file. */
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
 * Connects to a backend with its TLS settings. The files are read now and again before each new connection, so that a
 * certificate that was renewed is taken up; one that can't be used keeps the old. Throws `Failure` config_error when a
 * file can't be used at the start.
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
      // A peer that does not read, or is not read, holds little here; undici hands this to the socket.
      highWaterMark: HIGH_WATER_BYTES,
      // An upgraded connection may be closed in one direction first; undici ends the others by itself.
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
    throw new Failure('config_error', { detail: `a file of targetTls cannot be used: ${file}`, cause })
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
      // The old one keeps working until the file can be read again.
    }
  }
  // Connections that are made at the same time share a look.
  let looking: Promise<void> | undefined
  const refresh = (): Promise<void> => (looking ??= look().finally(() => (looking = undefined)))
  const hasFiles = [tls.caCertPath, tls.clientCertFile, tls.clientKeyFile].some((path) => path !== undefined)
  const { serverName } = tls
  return async (target, signal) => {
    if (hasFiles) await refresh()
    return connect(serverName === undefined ? target : { ...target, servername: serverName }, signal)
  }
}
