import 'reflect-metadata'
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'
import { type EpochMs, Secret } from '../../core/index.ts'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** A certificate with its key, PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: Secret
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** The serving certificate, and the CAs that the API server trusts. */
export interface WebhookCertificates {
  readonly serving: Certificate
  /** PEM certificates of all CAs that may have signed a certificate in use by a replica. */
  readonly caBundle: string
}

export interface IssueOptions {
  /** DNS names of the Service. */
  readonly names: readonly string[]
  readonly nowMs: EpochMs
  /** Lifetime of both certificates in milliseconds. Default 90 days. */
  readonly lifetimeMs?: number
}

export const DEFAULT_LIFETIME_MS = 90 * 24 * 3600 * 1000
/** Tolerates clock differences; a certificate that is not yet valid is rejected. */
const BACKDATED_MS = 5 * 60 * 1000

/** Creates a CA, and a serving certificate for `names` signed by it (P-256). The CA's key is discarded. */
export async function issueCertificates(options: IssueOptions): Promise<WebhookCertificates> {
  const { names, nowMs, lifetimeMs = DEFAULT_LIFETIME_MS } = options
  const notBefore = new Date(nowMs - BACKDATED_MS)
  const notAfter = new Date(nowMs + lifetimeMs)
  const [caKeys, keys] = await Promise.all([makeKeys(), makeKeys()])
  const id = randomBytes(6).toString('hex')
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    // Two CAs are trusted during a renewal, so their names must differ.
    name: `CN=extauth-webhook-ca-${id}`,
    notBefore,
    notAfter,
    keys: caKeys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  })
  const serving = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: `CN=${names[0] ?? 'extauth-webhook'}`.slice(0, 64),
    issuer: ca.subject,
    notBefore,
    notAfter,
    signingKey: caKeys.privateKey,
    publicKey: keys.publicKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  })
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return {
    serving: {
      cert: `${serving.toString('pem')}\n`,
      key: new Secret(`${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`),
      notBeforeMs: serving.notBefore.getTime(),
      notAfterMs: serving.notAfter.getTime(),
    },
    caBundle: `${ca.toString('pem')}\n`,
  }
}

/** Parses a PEM pair; undefined if it is invalid, or the key does not match. */
export function readCertificate(cert: string, key: Secret): Certificate | undefined {
  try {
    const read = new X509Certificate(cert)
    if (!read.checkPrivateKey(createPrivateKey(key.reveal()))) return undefined
    return { cert, key, notBeforeMs: Date.parse(read.validFrom), notAfterMs: Date.parse(read.validTo) }
  } catch {
    return undefined
  }
}

/** Whether the certificate is valid for all of these names or addresses. */
export function isFor({ cert }: Certificate, names: readonly string[]): boolean {
  const read = new X509Certificate(cert)
  return names.every((name) => (isIP(name) === 0 ? read.checkHost(name) : read.checkIP(name)) !== undefined)
}

/**
 * Renewal is due after two thirds of the lifetime since issue; replicas that do not lead wait for three quarters, in
 * case the leader fails. A certificate from the future is due immediately.
 */
export function isDue({ notBeforeMs, notAfterMs }: Certificate, nowMs: EpochMs, isLeader: boolean): boolean {
  const issuedMs = Math.min(notBeforeMs + BACKDATED_MS, notAfterMs)
  return nowMs < notBeforeMs || nowMs >= issuedMs + ((notAfterMs - issuedMs) * (isLeader ? 8 : 9)) / 12
}

/** The valid CAs of a bundle, newest first and unique, after `added`. */
export function mergeBundles(added: string, before: string, nowMs: EpochMs): string {
  const blocks = [...splitPem(added), ...splitPem(before)]
  const kept = [...new Set(blocks)].filter((block) => {
    try {
      return new x509.X509Certificate(block).notAfter.getTime() > nowMs
    } catch {
      return false
    }
  })
  return kept.map((block) => `${block}\n`).join('')
}

const splitPem = (text: string): string[] =>
  text
    .match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g)
    ?.map((block) => block.replaceAll('\r', '')) ?? []

const makeKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])

/** 127 random bits: positive and unique (RFC 5280 §4.1.2.2). */
function serial(): string {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0] ?? 0) & 0x7f
  return bytes.toString('hex')
}
