import { describe, expect, test } from 'vitest'
import { dnsLabel, instanceName, ownedName, shortened } from '../../../src/operator/names.ts'

describe('names of what the operator makes', () => {
  test('what a proxy owns has a name that says whose it is, and pods keep the label of earlier releases', () => {
    expect([ownedName('crm'), ownedName(`a${'-'.repeat(53)}b`)]).toEqual(['crm-extauth', `a${'-'.repeat(53)}b-extauth`])
    expect([instanceName('crm'), instanceName(`a${'-'.repeat(61)}b`)]).toEqual(['crm', `a${'-'.repeat(61)}b`])
  })

  test.each(['9', '1crm', 'a.b', 'a-b.c', '1.2.3', 'a'.repeat(64), `${'a'.repeat(60)}.b`, 'x.'.repeat(126) + 'y'])(
    '%s becomes one that a Service may have',
    (name) => {
      for (const made of [ownedName(name), instanceName(name)]) {
        expect(made).toMatch(/^[a-z]([-a-z0-9]*[a-z0-9])?$/)
        expect(made.length).toBeLessThanOrEqual(63)
      }
    },
  )

  test('names that differ stay apart', () => {
    const names = ['a.b', 'a-b', 'p-1', '1', '1.0', '1-0', 'a'.repeat(70), 'a'.repeat(71)]
    expect(new Set(names.map(ownedName)).size).toBe(names.length)
    expect(new Set(names.map(instanceName)).size).toBe(names.length)
    expect(dnsLabel('secret-a.b')).not.toBe(dnsLabel('secret-a-b'))
  })

  test('a name that is cut ends with a hash of the whole', () => {
    expect(shortened('a'.repeat(300), 253)).toMatch(/^a{244}-[0-9a-f]{8}$/)
    expect(shortened('short', 253)).toBe('short')
  })
})
