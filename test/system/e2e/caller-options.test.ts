import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { INITIALIZE, openLab, post, type TestLab } from '../../support/e2e/lab.ts'

let lab: TestLab
let caller: Record<string, string>

beforeAll(async () => {
  lab = await openLab()
  caller = { authorization: `Bearer ${await lab.token({ sub: 'alice', groups: ['dev'] })}` }
})
afterAll(() => lab.close())

/** Runs `body` while the named file of the lab's configuration reads as `edit` has it. */
async function edited(name: string, edit: (text: string) => string, body: () => Promise<void>): Promise<void> {
  const file = path.join(lab.configDirectory, name)
  const before = await readFile(file, 'utf8')
  await writeFile(file, edit(before))
  expect(await lab.reload()).toEqual([{ ok: true }])
  try {
    await body()
  } finally {
    await writeFile(file, before)
    await lab.reload()
  }
}

/** Adds lines to the route `cloud-sts`. */
const withRoute = (lines: string) => (text: string) =>
  text.replace(/^( +externalAuthConfigRef: \{ name: lab-cloud-sts \})$/m, `$1\n${lines}`)
const call = async (body: unknown, headers = caller): Promise<[number, string | undefined]> => {
  const response = await post(`${lab.url}/cloud-sts`, body, headers)
  const answer = response.headers.get('content-type')?.startsWith('application/json') === true
  const parsed = answer ? ((await response.json()) as { error?: { data?: { reason?: string } } }) : undefined
  return [response.status, parsed?.error?.data?.reason]
}

describe('limits.bufferedBody', () => {
  it('bounds the body of a route that signs it: 413 above, and the backend sees nothing', async () => {
    await edited('proxy.yaml', withRoute('      limits: { bufferedBody: 4Ki }'), async () => {
      expect((await call(INITIALIZE))[0]).toBe(200)
      lab.backend.forget()
      expect(await call({ ...INITIALIZE, padding: 'x'.repeat(5000) })).toEqual([413, 'body_too_large'])
      expect(lab.backend.requests('/cloud-sts')).toEqual([])
    })
    expect((await call({ ...INITIALIZE, padding: 'x'.repeat(5000) }))[0]).not.toBe(413)
  })
})

describe('onMatcherError', () => {
  const broken = (text: string): string => text.replace(`'"dev" in claims.groups'`, `'claims.nowhere == "x"'`)

  it('skip: a matcher that cannot be evaluated does not match, so the fallback role signs', async () => {
    await edited('cloud-sts.yaml', broken, async () => {
      expect((await call(INITIALIZE))[0]).toBe(200)
    })
  })

  it('deny: it is 403', async () => {
    await edited('cloud-sts.yaml', broken, () =>
      edited('proxy.yaml', withRoute('      onMatcherError: deny'), async () => {
        expect(await call(INITIALIZE)).toEqual([403, 'matcher_error'])
      }),
    )
  })
})

describe('requiredScopes', () => {
  it('are needed in the token: 403 that names them, for opaque tokens too', async () => {
    await edited('proxy.yaml', withRoute('      requiredScopes: [mcp:tools, mcp:admin]'), async () => {
      const token = async (scope: string | undefined, opaque: boolean): Promise<Record<string, string>> => {
        const response = await fetch(`${lab.identity.url}/lab/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ sub: 'alice', groups: ['dev'], opaque, ...(scope === undefined ? {} : { scope }) }),
        })
        const { access_token: text } = (await response.json()) as { access_token: string }
        return { authorization: `Bearer ${text}` }
      }
      for (const opaque of [false, true]) {
        for (const scope of [undefined, 'mcp:tools'])
          expect(await call(INITIALIZE, await token(scope, opaque))).toEqual([403, 'insufficient_scope'])
      }
      expect(await call(INITIALIZE, await token('mcp:admin mcp:tools', false))).toEqual([200, undefined])
      const refused = await post(`${lab.url}/cloud-sts`, INITIALIZE, await token('mcp:tools', false))
      expect(refused.headers.get('www-authenticate')).toMatch(
        /error="insufficient_scope".*scope="mcp:tools mcp:admin".*resource_metadata="[^"]+\/cloud-sts"|resource_metadata="[^"]+\/cloud-sts".*scope="mcp:tools mcp:admin"/,
      )
      const document = (await (
        await fetch(`${lab.url}/.well-known/oauth-protected-resource/cloud-sts`)
      ).json()) as object
      expect(document).toMatchObject({ scopes_supported: ['mcp:tools', 'mcp:admin'] })
    })
  })
})
