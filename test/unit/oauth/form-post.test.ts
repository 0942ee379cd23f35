import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { createOutbound } from '../../../src/net/index.ts'
import { basicCredentials, postForm } from '../../../src/oauth/form-post.ts'
import { recording } from '../../support/recording.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const outbound = () => sockets.closing(createOutbound({ name: 'service', clock: Date, deadlineMs: 500 }))

describe('a form for a token endpoint', () => {
  it('is sent in order, encoded, with repeated names', async () => {
    const { url, seen } = await recording(sockets, 200, 'application/json', '{}')
    const form = [
      ['grant_type', 'a:b c'],
      ['audience', 'one'],
      ['audience', 'zwei&ü'],
    ] as const
    const answer = await postForm(outbound(), { url: `${url}/token`, form, headers: { authorization: 'Basic x' } })
    expect(answer.status).toBe(200)
    expect(seen[0]).toMatchObject({
      line: 'POST /token',
      headers: {
        authorization: 'Basic x',
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=a%3Ab+c&audience=one&audience=zwei%26%C3%BC',
    })
  })

  it('may be given as an object, and any status is an answer', async () => {
    const { url, seen } = await recording(sockets, 400, 'application/json', '{"error":"invalid_grant"}')
    const answer = await postForm(outbound(), { url, form: { token: 't' } })
    expect([answer.status, answer.body.toString(), seen[0]?.body]).toEqual([
      400,
      '{"error":"invalid_grant"}',
      'token=t',
    ])
  })

  it.each([
    ['id', 'secret', 'id:secret'],
    ['a:b', 'c d', 'a%3Ab:c+d'],
    ['ü', '%+/', '%C3%BC:%25%2B%2F'],
  ])('is authenticated with id %s and secret %s, each encoded first (RFC 6749 §2.3.1)', (id, secret, expected) => {
    expect(basicCredentials(id, new Secret(secret))).toBe(`Basic ${btoa(expected)}`)
  })
})
