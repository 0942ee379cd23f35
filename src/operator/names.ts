import { createHash } from 'node:crypto'

/** Maximum length of volume names, Service names and label values. */
const MAX_LABEL = 63
const HASH_LENGTH = 8

/** A name with a hash of its origin as suffix, so that shortened names stay distinct. */
function hashed(name: string, from: string, most: number): string {
  const hash = createHash('sha256').update(from).digest('hex').slice(0, HASH_LENGTH)
  return `${name.slice(0, most - HASH_LENGTH - 1).replace(/[-.]+$/, '')}-${hash}`
}

/** A name of at most `most` characters. */
export const shortened = (name: string, most: number): string => (name.length <= most ? name : hashed(name, name, most))

/** Converts an object name, which may have dots and 253 characters, into a DNS label. */
export const dnsLabel = (name: string): string =>
  name.includes('.') ? hashed(name.replaceAll('.', '-'), name, MAX_LABEL) : shortened(name, MAX_LABEL)

/** Converts the name of an MCPRemoteProxy into a valid Service name: unchanged if it is one, else with a hash. */
const serviceLabel = (name: string, most: number): string => {
  if (!/^[a-z]/.test(name)) return hashed(`p-${name.replaceAll('.', '-')}`, name, most)
  return name.includes('.') ? hashed(name.replaceAll('.', '-'), name, most) : shortened(name, most)
}

const SUFFIX = '-extauth'

/** Name of each object that an MCPRemoteProxy owns; no controller of the same kind uses it. */
export const ownedName = (name: string): string => `${serviceLabel(name, MAX_LABEL - SUFFIX.length)}${SUFFIX}`

/** Value of the label that selects its pods, and the name of owned objects in earlier releases. */
export const instanceName = (name: string): string => serviceLabel(name, MAX_LABEL)
