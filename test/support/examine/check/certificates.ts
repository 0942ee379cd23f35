import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000

/** PEM certificate and key. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

export interface Authority extends Pair {
  /** A certificate of this authority for `host`, valid from and until so many days from now. */
  issue(host: string, days?: readonly [from: number, until: number]): Promise<Pair>
}

const pem = async (key: webcrypto.CryptoKey): Promise<string> => {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
}
const day = (days: number): Date => new Date(Date.now() + days * DAY_MS)

/** An authority made for one run, and what it issues. */
export async function authority(
  name: string,
  [from, until]: readonly [number, number] = [-30, 3650],
): Promise<Authority> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    notBefore: day(from),
    notAfter: day(until),
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
  })
  return {
    cert: own.toString('pem'),
    key: await pem(keys.privateKey),
    async issue(host, [start, end] = [-1, 365]) {
      const leaf = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
      const certificate = await x509.X509CertificateGenerator.create({
        subject: `CN=${host}`,
        issuer: own.subject,
        publicKey: leaf.publicKey,
        signingKey: keys.privateKey,
        notBefore: day(start),
        notAfter: day(end),
        signingAlgorithm: ALGORITHM,
        extensions: [
          new x509.SubjectAlternativeNameExtension([{ type: /^[\d.]+$/.test(host) ? 'ip' : 'dns', value: host }]),
        ],
      })
      return { cert: certificate.toString('pem'), key: await pem(leaf.privateKey) }
    },
  }
}
