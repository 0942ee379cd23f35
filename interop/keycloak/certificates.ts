import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'

/** Paths of PEM files. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

/** An authority of this very run, made by openssl. */
export interface Authority extends Pair {
  readonly pem: Buffer
  /** A certificate for an RSA key; `names` are subject alternative names. */
  issue(file: string, of: { readonly subject: string; readonly names?: string }): Pair
}

/** Output of openssl; throws if it fails. */
export function openssl(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('openssl', args, { encoding: 'utf8', timeout: 60_000 })
  if (status !== 0) throw new Error(`openssl ${args.slice(0, 2).join(' ')} did not work: ${stderr.slice(-300)}`)
  return stdout
}

/** Thumbprint of a certificate as openssl says it, as JWTs have it: base64url. */
export function thumbprint(certificate: string, digest: 'sha1' | 'sha256'): string {
  const [, hex = ''] = openssl('x509', '-in', certificate, '-noout', '-fingerprint', `-${digest}`).trim().split('=')
  return Buffer.from(hex.replaceAll(':', ''), 'hex').toString('base64url')
}

/** Makes an authority whose files are in `directory`. */
export function createAuthority(directory: string, name: string): Authority {
  const pair = (file: string): Pair => ({
    certificate: path.join(directory, `${file}.crt`),
    key: path.join(directory, `${file}.key`),
  })
  const make = (file: string, subject: string, more: readonly string[]): Pair => {
    const made = pair(file)
    const files = ['-keyout', made.key, '-out', made.certificate]
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', subject, ...files, ...more)
    return made
  }
  const own = make(name, `/CN=${name}`, [])
  return {
    ...own,
    pem: readFileSync(own.certificate),
    issue: (file, { subject, names }) => {
      const by = ['-CA', own.certificate, '-CAkey', own.key, '-addext', 'basicConstraints=critical,CA:FALSE']
      return make(file, subject, names === undefined ? by : [...by, '-addext', `subjectAltName=${names}`])
    },
  }
}
