import { Failure } from '../core/index.ts'

/** Reference to a secret (`SecretRef` of the specification). */
export interface SecretRef {
  readonly name: string
  readonly key: string
}

const MAX_LENGTH = 253
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/
const KEY = /^[-._A-Za-z0-9]+$/

/**
 * `<name>/<key>` of a reference, safe to be used as a path: the name is a DNS-1123 subdomain, the key has letters,
 * digits, `-`, `_`, `.` and does not start with `..` (decisions §6, as Kubernetes has it). Throws `config_error`.
 */
export function labelOf({ name, key }: SecretRef): string {
  if (name.length > MAX_LENGTH || !SUBDOMAIN.test(name)) {
    throw new Failure('config_error', { detail: 'the name of a secret reference is not a DNS-1123 subdomain' })
  }
  if (key.length > MAX_LENGTH || !KEY.test(key) || key === '.' || key.startsWith('..')) {
    throw new Failure('config_error', { detail: `the key of a reference to the secret ${name} is not valid` })
  }
  return `${name}/${key}`
}
