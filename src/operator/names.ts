import { createHash } from 'node:crypto'

/** Names of volumes and of Services, and values of labels. */
const MAX_LABEL = 63
const HASH_LENGTH = 8

/** A name that ends with a hash of what it was made of, so that two that are cut or changed alike stay apart. */
function hashed(name: string, from: string, most: number): string {
  const hash = createHash('sha256').update(from).digest('hex').slice(0, HASH_LENGTH)
  return `${name.slice(0, most - HASH_LENGTH - 1).replace(/[-.]+$/, '')}-${hash}`
}

/** A name of at most `most` characters. */
export const shortened = (name: string, most: number): string => (name.length <= most ? name : hashed(name, name, most))

/** A name as a DNS label: names of most objects may have dots and 253 characters. */
export const dnsLabel = (name: string): string =>
  name.includes('.') ? hashed(name.replaceAll('.', '-'), name, MAX_LABEL) : shortened(name, MAX_LABEL)

/** The name of an MCPRemoteProxy as one that a Service may have: unchanged where it is one, else with a hash. */
const serviceLabel = (name: string, most: number): string => {
  if (!/^[a-z]/.test(name)) return hashed(`p-${name.replaceAll('.', '-')}`, name, most)
  return name.includes('.') ? hashed(name.replaceAll('.', '-'), name, most) : shortened(name, most)
}

const SUFFIX = '-extauth'

/** Name of each object that an MCPRemoteProxy owns: no controller of the same kind uses it for its own objects. */
export const ownedName = (name: string): string => `${serviceLabel(name, MAX_LABEL - SUFFIX.length)}${SUFFIX}`

/** Value of the label that selects its pods, and the name that earlier releases gave to what it owns. */
export const instanceName = (name: string): string => serviceLabel(name, MAX_LABEL)
