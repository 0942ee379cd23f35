import { DNS_SUFFIXES } from './aws-partitions.ts'

/** AWS region: the specification's pattern, and the European sovereign cloud. */
export const REGION = /^([a-z]{2}|eusc)(-[a-z]+)+-\d+$/

/** Suffixes of AWS hosts (public, China, dual stack, function URLs). */
const SUFFIX = new RegExp(`\\.(${DNS_SUFFIXES}|api\\.aws|api\\.amazonwebservices\\.com\\.cn|on\\.aws)$`)
/** Hosts with AWS suffixes that customers run: any signing name may be correct. */
const CUSTOMERS = /(^|\.)(elb|compute|compute-1|rds|vpce-svc-[0-9a-f]+)(\.|$)/

/** Signing names that differ in hosts. For all others, one name equals or starts the other. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  'aws-marketplace': ['marketplace'],
  awsssoportal: ['portal'],
  connect: ['contact-lens'],
  'execute-api': ['participant'],
  iotsecuredtunneling: ['tunneling'],
  mgh: ['migrationhub-config'],
  mobiletargeting: ['pinpoint'],
  ses: ['email', 'mail-manager'],
  'sso-oauth': ['oidc'],
}
/** Shorter labels are ambiguous. */
const SHORTEST_NAME = 3

/**
 * Returns warnings when the service or region in an AWS host differs from those that requests are signed for (AWS
 * General Reference, service endpoints). Other hosts, customers' hosts and hosts without a region are not checked.
 */
export function awsHostMismatches(hostname: string, signed: { service: string; region: string }): string[] {
  const host = hostname.toLowerCase().replace(/\.$/, '')
  const name = host.replace(SUFFIX, '')
  if (name === host || CUSTOMERS.test(name)) return []
  const labels = name.split('.')
  const found: string[] = []
  if (!labels.some((label) => isNameOf(label, signed.service.toLowerCase())))
    found.push(`requests are signed for the service "${signed.service}", which is not in the name of this AWS host`)
  const region = labels.findLast((label) => REGION.test(label))
  if (region !== undefined && region !== signed.region)
    found.push(`requests are signed for the region "${signed.region}", and this AWS host is in "${region}"`)
  return found
}

function isNameOf(label: string, service: string): boolean {
  if (REGION.test(label)) return false
  const others = Object.hasOwn(OTHER_NAMES, service) ? (OTHER_NAMES[service] ?? []) : []
  if (others.some((other) => label === other || label.endsWith(`-${other}`))) return true
  if (label.startsWith(`${service}-`) || (service.length >= SHORTEST_NAME && label.endsWith(`-${service}`))) return true
  const [a, b] = [label.replaceAll('-', ''), service.replaceAll('-', '')]
  return a === b || (b.length >= SHORTEST_NAME && a.startsWith(b)) || (a.length >= SHORTEST_NAME && b.startsWith(a))
}
