import { createHash, type KeyObject, type X509Certificate } from 'node:crypto'
import { Failure, type Clock, type SecretHandle } from '../core/index.ts'
import { readCertificates, readPrivateKey } from '../files/index.ts'
import type { ClientCertificate } from '../net/index.ts'

/** Certificate header parameters of client assertions (RFC 7515 §4.1.6 to §4.1.8). */
export interface AssertionCertificate {
  readonly own: X509Certificate
  /** Header parameters. */
  readonly header: Readonly<Record<string, string | string[]>>
}

const thumbprint = (certificate: X509Certificate, hash: 'sha1' | 'sha256'): string =>
  createHash(hash).update(certificate.raw).digest('base64url')

/** Builds the header parameters of a PEM chain. Throws `ContentProblem`. */
export function assertionCertificate(
  pem: string,
  { legacyThumbprint = false, x5c = false }: { legacyThumbprint?: boolean | undefined; x5c?: boolean | undefined },
): AssertionCertificate {
  const chain = readCertificates(Buffer.from(pem))
  const [own] = chain
  if (own === undefined) throw new TypeError('a chain without certificates')
  return {
    own,
    header: {
      'x5t#S256': thumbprint(own, 'sha256'),
      ...(legacyThumbprint ? { x5t: thumbprint(own, 'sha1') } : {}),
      ...(x5c ? { x5c: chain.map(({ raw }) => raw.toString('base64')) } : {}),
    },
  }
}

/** Throws `secret_unavailable` for an expired certificate. */
export function refuseEnded(certificate: X509Certificate, label: string, clock: Clock): void {
  if (certificate.validToDate.getTime() > clock.now()) return
  throw new Failure('secret_unavailable', { detail: `the certificate in secret ${label} has expired`, secret: label })
}

/** Throws `config_error` for a key that does not match the certificate. */
export function refuseStranger(certificate: X509Certificate, key: KeyObject, label: string): void {
  if (certificate.checkPrivateKey(key)) return
  throw new Failure('config_error', {
    detail: `the certificate in secret ${label} belongs to another key`,
    secret: label,
  })
}

interface Pair extends ClientCertificate {
  readonly own: X509Certificate
}

/** A certificate and key from two secrets, kept current. */
export interface CertificatePair {
  /** Throws `secret_unavailable` while no usable pair exists, or when it has expired. */
  check(): void
  current(): ClientCertificate | undefined
}

/** Two secrets are not renewed atomically: while they do not match, the previous pair is used. */
export function createCertificatePair(certificate: SecretHandle, key: SecretHandle, clock: Clock): CertificatePair {
  let seen = ''
  let pair: Pair | undefined
  let problem: unknown
  const look = (): void => {
    const versions = `${certificate.version} ${key.version}`
    if (versions === seen && problem === undefined) return
    try {
      const cert = Buffer.from(certificate.current().reveal())
      const [own] = readCertificates(cert)
      const secret = key.current()
      if (own === undefined) throw new TypeError('a chain without certificates')
      refuseStranger(own, readPrivateKey(Buffer.from(secret.reveal())), certificate.label)
      pair = { own, cert, key: secret }
      problem = undefined
    } catch (error) {
      problem = error
    }
    seen = versions
  }
  return {
    check() {
      look()
      if (pair !== undefined) return refuseEnded(pair.own, certificate.label, clock)
      if (problem instanceof Failure) throw problem
      throw new Failure('secret_unavailable', {
        detail: `the secrets ${certificate.label} and ${key.label} hold no matching certificate and key`,
        secret: certificate.label,
        cause: problem,
      })
    },
    current() {
      look()
      return pair
    },
  }
}
