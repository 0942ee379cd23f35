import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { areCertificates, readCertificates, readPrivateKey } from '../../../src/files/index.ts'
import { TLS } from '../../support/tls.ts'

const base64 = (pem: Buffer): Buffer => Buffer.from(pem.toString().replace(/-----[^-]+-----|\s/g, ''), 'base64')
const both = Buffer.concat([Buffer.from('# ours\n'), TLS.ca, Buffer.from('\n# theirs\n'), TLS.otherCa])
const damaged = Buffer.concat([TLS.ca, Buffer.from(TLS.otherCa.toString().replace(/\n[^-\n]{10}/, '\nAAAAAAAAAA'))])
const key = (type: 'pkcs8' | 'sec1', more: object = {}) =>
  Buffer.from(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type, format: 'pem', ...more }))

describe('certificates in PEM', () => {
  it.each([
    ['one', TLS.ca, 1],
    ['several, with words between them', both, 2],
    ['with line ends of Windows', Buffer.from(TLS.ca.toString().replaceAll('\n', '\r\n')), 1],
    ['beside a key', Buffer.concat([TLS.server.key, TLS.server.cert]), 1],
  ])('%s', (_name, content, count) => {
    expect(readCertificates(content)).toHaveLength(count)
    expect(areCertificates(content)).toBe(true)
  })

  it.each([
    ['nothing', Buffer.alloc(0), /^it is empty/],
    ['blanks', Buffer.from(' \n\n'), /^it is empty/],
    ['text', Buffer.from('hello'), /^it holds no certificate, expected PEM that begins with/],
    ['a key', TLS.server.key, /^it holds a private key and no certificate/],
    ['DER', base64(TLS.ca), /^it is binary \(DER\).*openssl x509 -inform der/],
    ['an end without a beginning', Buffer.from('-----END CERTIFICATE-----\n'), /^it holds no certificate/],
    ['a second one that is damaged', damaged, /^certificate 2 of 2 in it cannot be read/],
  ])('%s is none', (_name, content, message) => {
    expect(() => readCertificates(content)).toThrow(message)
    expect(areCertificates(content)).toBe(false)
  })
})

describe('a private key in PEM', () => {
  it.each([
    ['PKCS#8', key('pkcs8')],
    ['SEC1', key('sec1')],
    ['of a fixture', TLS.server.key],
  ])('%s', (_name, content) => {
    expect(readPrivateKey(content).type).toBe('private')
  })

  it.each([
    ['nothing', Buffer.alloc(0), /^it is empty/],
    ['text', Buffer.from('hello'), /^it holds no private key/],
    ['a certificate', TLS.server.cert, /^it holds a certificate and no private key/],
    ['DER', base64(TLS.server.key), /^it is binary \(DER\).*openssl pkey -inform der/],
    ['one with a passphrase', key('pkcs8', { cipher: 'aes-256-cbc', passphrase: 'x' }), /^its key is encrypted/],
    ['one that is cut off', TLS.server.key.subarray(0, 200), /cannot be read; it may be truncated/],
  ])('%s is none', (_name, content, message) => {
    expect(() => readPrivateKey(content)).toThrow(message)
  })
})
