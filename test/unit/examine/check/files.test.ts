import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { checkFile, checkPair } from '../../../../src/examine/check/files.ts'
import { areCertificates } from '../../../../src/files/index.ts'
import { START_MS } from '../../../support/ports.ts'
import { TLS } from '../../../support/tls.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-check-'))
afterAll(() => rmSync(directory, { recursive: true }))

const write = (name: string, content: string | Buffer): string => {
  const file = path.join(directory, name)
  writeFileSync(file, content)
  return file
}

const ca = TLS.ca.toString()
const labelled = (label: string) => ca.replaceAll(' CERTIFICATE-----', ` ${label}CERTIFICATE-----`)
const damaged = ca.replace(/\n[^-]{8}/, '\n!!!!!!!!')

describe('extauth check takes and refuses the certificates that the proxy does', () => {
  it.each<[string, string | Buffer, boolean]>([
    ['a certificate', ca, true],
    ['TRUSTED CERTIFICATE', labelled('TRUSTED '), true],
    ['X509 CERTIFICATE', labelled('X509 '), true],
    ['text around them', `# the authorities\n${ca}\n# and another\n${TLS.otherCa.toString()}`, true],
    ['a damaged one', damaged, false],
    ['a damaged one after a good one', `${ca}${damaged}`, false],
    ['one that is cut off', ca.slice(0, 200), false],
    ['a private key', TLS.server.key, false],
    ['text', 'hello', false],
    ['DER', Buffer.from(ca.replaceAll(/-----.*-----|\n/g, ''), 'base64'), false],
  ])('%s', (name, content, isGood) => {
    const file = write(`${name}.pem`, content)
    const [line] = checkFile({ holds: 'certificates', path: file }, 'caCertPath', START_MS)
    expect(areCertificates(Buffer.from(content))).toBe(isGood)
    // Whether it is valid at this time is another question.
    const isRead = line?.status === 'ok' || /^valid until|(?:ended|begins|ends) on|have ended/.test(line?.detail ?? '')
    expect([isRead, line?.detail]).toEqual([isGood, expect.any(String)])
  })

  it('and says the same of a key', () => {
    const cert = write('cert.pem', TLS.server.cert)
    const lines = (key: string | Buffer) =>
      checkPair(cert, write('key.pem', key), 'listen.tls', START_MS).map(({ detail }) => detail)
    expect(lines(TLS.server.key)).toContain('belongs to the certificate')
    expect(lines(TLS.otherServer.key)).toEqual([
      expect.anything(),
      expect.stringContaining('it is the key of another certificate'),
    ])
    expect(lines(TLS.ca).at(-1)).toMatch(
      /key\.pem cannot be used: it holds a certificate and no private key, expected PEM/,
    )
  })
})
