import { describe, expect, test } from 'vitest'
import { isAsWanted } from '../../../src/operator/wanted.ts'

const withCpu = (cpu: unknown, env = '1') => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'crm' },
  spec: { template: { containers: [{ env: [{ name: 'A', value: env }], resources: { requests: { cpu } } }] } },
})

const podsOf = (spec: object) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'crm' },
  spec: { template: { spec } },
})

describe('whether an object is as it was applied', () => {
  test.each([
    ['0.1', '100m'],
    [1, '1'],
    ['0.5Gi', '512Mi'],
    ['1024Mi', '1Gi'],
    ['1e3', '1k'],
    ['1500m', '1.5'],
  ])('%s is what the server writes as %s', (wanted, stored) => {
    expect(isAsWanted(withCpu(wanted), withCpu(stored))).toBe(true)
  })

  test.each([
    ['1', '2'],
    ['1', '1m'],
    ['1M', '1Mi'],
    ['lots', 'more'],
    ['1', undefined],
  ])('%s is not %s', (wanted, stored) => {
    expect(isAsWanted(withCpu(wanted), withCpu(stored))).toBe(false)
  })

  test('only amounts are compared as amounts', () => {
    expect(isAsWanted(withCpu('1', '1.0'), withCpu('1', '1'))).toBe(false)
  })

  test.each([
    ['a list', { tolerations: [] }],
    ['a map', { nodeSelector: {} }],
    ['an empty text', { subdomain: '' }],
    ['nothing', { priorityClassName: null }],
    ['a number', { minReadySeconds: 0 }],
    ['a flag that is off', { hostNetwork: false }],
  ])('%s that the server leaves out is nothing that is missing', (_what, spec) => {
    expect(isAsWanted(podsOf(spec), podsOf({}))).toBe(true)
  })

  test('a flag that says another thing when it is absent is missing', () => {
    expect(isAsWanted(podsOf({ automountServiceAccountToken: false }), podsOf({}))).toBe(false)
  })

  test('a removed empty label is missing', () => {
    const selecting = (matchLabels: object) => ({ affinity: { selector: { matchLabels } } })
    expect(isAsWanted(podsOf(selecting({ free: '' })), podsOf(selecting({})))).toBe(false)
  })

  test('the size of a volume is an amount', () => {
    const volumes = (sizeLimit: string) => ({ volumes: [{ name: 'tmp', emptyDir: { sizeLimit } }] })
    expect(isAsWanted(podsOf(volumes('1024Mi')), podsOf(volumes('1Gi')))).toBe(true)
    expect(isAsWanted(podsOf(volumes('1024Mi')), podsOf(volumes('2Gi')))).toBe(false)
  })

  test('items that others own among ours are theirs, where each has a key', () => {
    const ours = { name: 'extauth', env: [{ name: 'A', value: '1' }], args: ['proxy'] }
    const side = { name: 'side' }
    expect(isAsWanted(podsOf({ containers: [ours] }), podsOf({ containers: [side, ours] }))).toBe(true)
    const added = { ...ours, env: [{ name: 'B', value: '2' }, ...ours.env] }
    expect(isAsWanted(podsOf({ containers: [ours] }), podsOf({ containers: [added] }))).toBe(true)
    expect(isAsWanted(podsOf({ containers: [ours] }), podsOf({ containers: [side] }))).toBe(false)
    const more = { ...ours, args: ['proxy', '--callers-of-mine'] }
    expect(isAsWanted(podsOf({ containers: [ours] }), podsOf({ containers: [more] }))).toBe(false)
  })

  test('a NetworkPolicy is owned as a whole: additions are reverted', () => {
    const policy = (...ports: number[]) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'crm' },
      spec: { egress: [{ ports: ports.map((port) => ({ port, protocol: 'TCP' })) }] },
    })
    expect(isAsWanted(policy(443), policy(443))).toBe(true)
    expect(isAsWanted(policy(443), policy(443, 25))).toBe(false)
  })
})
