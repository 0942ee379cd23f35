import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

const BLOCK = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g

/** Why a file's content is invalid, as a phrase with the remedy. Quotes nothing of the file. */
export class ContentProblem extends Error {}

/**
 * Parses the certificates of a PEM file in order. Throws `ContentProblem` if there is none or one is invalid: Node's
 * TLS accepts such a file silently and then trusts no server.
 */
export function readCertificates(content: Buffer): readonly X509Certificate[] {
  const text = content.toString('latin1')
  const blocks = text.match(BLOCK) ?? []
  if (blocks.length === 0) throw new ContentProblem(noCertificate(content, text))
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block)
    } catch {
      throw new ContentProblem(`certificate ${index + 1} of ${blocks.length} in it cannot be read; it may be truncated`)
    }
  })
}

function noCertificate(content: Buffer, text: string): string {
  if (text.trim() === '') return 'it is empty, expected PEM certificates'
  if (text.includes('-----BEGIN') && text.includes('PRIVATE KEY-----'))
    return 'it holds a private key and no certificate, expected PEM certificates'
  if (isDer(content)) return 'it is binary (DER), expected PEM: convert it with "openssl x509 -inform der"'
  return 'it holds no certificate, expected PEM that begins with "-----BEGIN CERTIFICATE-----"'
}

/** A SEQUENCE with a long length: the start of certificates and keys in DER. */
const isDer = (content: Buffer): boolean => content[0] === 0x30 && ((content[1] ?? 0) & 0x80) !== 0

/** Parses the private key of a PEM file. Throws `ContentProblem` if there is none or it is encrypted. */
export function readPrivateKey(content: Buffer): KeyObject {
  const text = content.toString('latin1')
  if (text.trim() === '') throw new ContentProblem('it is empty, expected a private key in PEM')
  if (!text.includes('PRIVATE KEY-----')) {
    if (isDer(content))
      throw new ContentProblem('it is binary (DER), expected PEM: convert it with "openssl pkey -inform der"')
    const found = text.includes('-----BEGIN CERTIFICATE-----') ? 'it holds a certificate and no' : 'it holds no'
    throw new ContentProblem(`${found} private key, expected PEM that begins with "-----BEGIN PRIVATE KEY-----"`)
  }
  if (text.includes('ENCRYPTED'))
    throw new ContentProblem('its key is encrypted, expected one without passphrase (remove it with "openssl pkey")')
  try {
    return createPrivateKey({ key: content, format: 'pem' })
  } catch {
    throw new ContentProblem('its private key cannot be read; it may be truncated')
  }
}

/** Whether PEM certificates are valid, for files that are reloaded. */
export function areCertificates(content: Buffer): boolean {
  try {
    return readCertificates(content).length > 0
  } catch {
    return false
  }
}
