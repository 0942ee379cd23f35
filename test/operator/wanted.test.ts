import { describe, expect, test } from 'vitest'
import { isAsWanted } from '../../src/operator/wanted.ts'

const withCpu = (cpu: unknown, env = '1') => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'crm' },
  spec: { template: { containers: [{ env: [{ name: 'A', value: env }], resources: { requests: { cpu } } }] } },
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
})
