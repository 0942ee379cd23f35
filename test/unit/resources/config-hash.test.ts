import { assert, constantFrom, dictionary, jsonValue, property, string } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson, configHash } from '../../../src/resources/index.ts'
import { externalAuth, load, SPECS } from '../../support/load/documents/build.ts'

const hashOf = (spec: unknown): string | undefined => load(externalAuth(spec)).auths[0]?.configHash

describe('configHash (decisions §6)', () => {
  test('is the first 16 hex digits of SHA-256 over the canonical JSON of the defaulted spec', () => {
    // printf '{"type":"unauthenticated"}' | sha256sum
    expect(hashOf({ type: 'unauthenticated' })).toBe('3994c8be99c3ff23')
  })

  test('does not change with the order of fields, with defaults that are written out, or with the alias', () => {
    const arn = 'arn:aws:iam::123456789012:role/a'
    const short = hashOf({ type: 'awsSts', awsSts: { region: 'eu-central-1', fallbackRoleArn: arn } })
    const long = hashOf({
      cloudSts: {
        sessionNameClaim: 'sub',
        service: 'aws-mcp',
        fallbackRoleArn: arn,
        sessionDuration: 3600,
        roleClaim: 'groups',
        region: 'eu-central-1',
      },
      type: 'cloudSts',
    })
    expect(short).toMatch(/^[0-9a-f]{16}$/)
    expect(long).toBe(short)
  })

  test('changes with every value', () => {
    const hashes = Object.values(SPECS).map((spec) => hashOf(spec))
    const longer = hashOf({ type: 'cloudSts', cloudSts: { ...SPECS.cloudSts.cloudSts, sessionDuration: 7200 } })
    expect(new Set([...hashes, longer]).size).toBe(hashes.length + 1)
  })

  test('does not depend on where the files lie', () => {
    const spec = {
      type: 'tokenExchange',
      tokenExchange: { ...SPECS.tokenExchange.tokenExchange, caCertPath: './ca.pem' },
    }
    expect(hashOf(spec)).toBe(configHash(load(externalAuth(spec)).auths[0]?.document.spec))
  })
})

describe('canonical JSON', () => {
  test('is JSON with sorted keys that reads back as the same value', () => {
    assert(
      property(jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { seed: 11 },
    )
  })

  test('does not depend on the order in which keys were set', () => {
    assert(
      property(dictionary(string(), constantFrom(1, 'a', null)), (value) => {
        const turned = Object.fromEntries(Object.entries(value).toReversed())
        expect(canonicalJson(turned)).toBe(canonicalJson(value))
      }),
      { seed: 12 },
    )
  })

  test('leaves undefined out and sorts by code units', () => {
    expect(canonicalJson({ b: undefined, é: 1, a: [undefined], Z: { y: true } })).toBe(
      '{"Z":{"y":true},"a":[null],"é":1}',
    )
  })
})
