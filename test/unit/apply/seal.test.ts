import { describe, expect, it } from 'vitest'
import { createApply } from '../../../src/apply/index.ts'
import { applyHeader, applyNone } from '../../../src/apply/header.ts'
import { createSeal } from '../../../src/apply/seal.ts'
import { NO_CREDENTIAL, Secret, type Armed, type Body, type Credential } from '../../../src/core/index.ts'
import type { Draft } from '../../../src/apply/applier.ts'
import { createManualClock, START_MS } from '../../support/ports.ts'

const armed = (credential: Credential, headers: string[] = ['accept', '*/*'], body: Body = { kind: 'none' }): Armed =>
  ({
    credential,
    known: { matched: { inbound: { method: 'POST' }, backendPath: '/mcp?a=b', headers, body } },
  }) as unknown as Armed

const header = (name: string, value: string): Credential => ({ kind: 'header', name, value: new Secret(value) })
const attempt = { number: 1, final: false }
const options = { host: 'api.example.com:8443', needsBody: false, clock: createManualClock() }

describe('apply', () => {
  it('seals host, headers, length and credential, in this order', () => {
    const bytes = Buffer.from('{"ä":1}')
    const sealed = createApply(options).apply(armed(header('x-key', 'v'), ['accept', '*/*'], { kind: 'kept', bytes }), {
      number: 2,
      final: true,
    })
    expect(sealed).toMatchObject({ method: 'POST', path: '/mcp?a=b', final: true, body: { kind: 'kept', bytes } })
    expect(sealed.headers).toEqual([
      'host',
      'api.example.com:8443',
      'accept',
      '*/*',
      'content-length',
      '8',
      'x-key',
      'v',
    ])
  })

  it.each<[string, Body, string[]]>([
    ['no body', { kind: 'none' }, []],
    ['a stream of unknown length', { kind: 'stream', stream: undefined as never, length: undefined }, []],
    ['a stream of known length', { kind: 'stream', stream: undefined as never, length: 9 }, ['content-length', '9']],
  ])('knows the length of %s', (_, body, expected) => {
    const sealed = createApply(options).apply(armed(NO_CREDENTIAL, [], body), attempt)
    expect(sealed.headers).toEqual(['host', 'api.example.com:8443', ...expected])
  })

  it('starts each attempt from the headers of the match stage', () => {
    const apply = createApply(options)
    const matched = ['accept', '*/*']
    apply.apply(armed(header('x-key', 'one'), matched), attempt)
    const second = apply.apply(armed(header('x-key', 'two'), matched), attempt)
    expect(second.headers.filter((part) => part === 'x-key')).toHaveLength(1)
    expect(second.headers).toContain('two')
    expect(matched).toEqual(['accept', '*/*'])
  })

  it('sets what the route forwards before the credential, each header once, and keeps nothing of it', () => {
    const forwarded = [header('x-tenant', '42'), header('accept', 'text/plain'), header('x-key', 'not this')]
    const apply = createApply(options)
    const matched = ['accept', '*/*', 'x-own', 'a']
    const sealed = apply.apply({ ...armed(header('x-key', 'v'), matched), forwarded } as Armed, attempt)
    const host = ['host', 'api.example.com:8443']
    expect(sealed.headers).toEqual([...host, 'x-own', 'a', 'x-tenant', '42', 'accept', 'text/plain', 'x-key', 'v'])
    expect(apply.apply(armed(NO_CREDENTIAL, matched), attempt).headers).toEqual([...host, ...matched])
  })

  it('sets its header once, whatever was there before', () => {
    const draft: Draft = {
      method: 'GET',
      path: '/',
      host: 'h',
      headers: ['x-key', 'a', 'b', 'x-key', 'x-key', 'c'],
      body: { kind: 'none' },
      nowMs: 0,
    }
    applyHeader(draft, { kind: 'header', name: 'x-key', value: new Secret('ours') })
    expect(draft.headers).toEqual(['b', 'x-key', 'x-key', 'ours'])
  })

  it('adds nothing for type unauthenticated', () => {
    expect(createApply(options).apply(armed(NO_CREDENTIAL), attempt).headers).not.toContain('authorization')
  })

  it('signs with the time of the backend once it is known, unless it is absurd', () => {
    const clock = createManualClock()
    const times: number[] = []
    const apply = createSeal(
      { ...options, clock },
      { none: (draft) => void times.push(draft.nowMs), header: applyHeader, aws: () => undefined },
    )
    apply.apply(armed(NO_CREDENTIAL), attempt)
    apply.noteServerTime(START_MS - 600_000)
    apply.apply(armed(NO_CREDENTIAL), attempt)
    clock.advance(1000)
    apply.noteServerTime(START_MS + 48 * 3_600_000)
    apply.apply(armed(NO_CREDENTIAL), attempt)
    expect(times).toEqual([START_MS, START_MS - 600_000, START_MS - 599_000])
    expect(applyNone(undefined as never, NO_CREDENTIAL)).toBeUndefined()
  })
})
