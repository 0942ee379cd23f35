import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createServer, request as send, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { passing, runConformance } from '../../support/lab/conformance.ts'
import { callerHeaders, startTestLab } from '../../support/lab/proxied.ts'

let lab: Lab
let callers: Server

/** The suite can't send a token, so a caller in front of the proxy adds one to everything it sends. */
async function startCaller(headers: Record<string, string>): Promise<Server> {
  const { hostname, port } = new URL(lab.url)
  const server = createServer((request, response) => {
    const { method, url: path } = request
    const outgoing = send({ hostname, port, method, path, headers: { ...request.headers, ...headers } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    request.pipe(outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** Gives a route of the running proxy a rule that allows all requests. */
async function allowAll(route: string): Promise<void> {
  const file = path.join(lab.configDirectory, 'proxy.yaml')
  const text = await readFile(file, 'utf8')
  const name = `    - name: ${route}\n`
  expect(text).toContain(name)
  const rules = '      authorization: { default: deny, rules: [{ name: all, effect: allow }] }\n'
  await writeFile(file, text.replace(name, `${name}${rules}`))
  await lab.reload()
}

beforeAll(async () => {
  lab = await startTestLab()
  callers = await startCaller(await callerHeaders(lab, { sub: 'alice', groups: ['admins'], ttlSeconds: 3600 }))
})
afterAll(async () => {
  callers.closeAllConnections()
  callers.close()
  await lab.close()
})

const ROUTES = [
  ['token-exchange', '2026-07-28'],
  ['cloud-sts', '2025-11-25'],
] as const

async function conforms(route: string, revision: string): Promise<void> {
  const file = path.join(import.meta.dirname, `../../support/lab/conformance-${revision}.json`)
  const listed = JSON.parse(await readFile(file, 'utf8')) as string[]
  const { port } = callers.address() as AddressInfo
  const results = await runConformance(`http://127.0.0.1:${port}/${route}`, revision)
  expect(results.filter(({ failed }) => failed > 0)).toEqual([])
  expect(passing(results)).toEqual(listed)
}

// A route with a header that comes with each credential, and one that signs, each with a revision of its own.
test.each(ROUTES)(
  'the official conformance suite through the route %s: every scenario of %s that passes direct passes',
  conforms,
  120_000,
)

describe('with a rule that allows all requests', () => {
  test.each([
    ['token-exchange', '2025-11-25'],
    ['cloud-sts', '2026-07-28'],
  ])(
    'nothing differs in the official conformance suite through the route %s, %s',
    async (route, revision) => {
      await allowAll(route)
      const decisions = async (): Promise<unknown[]> =>
        ((await (await fetch(`${lab.adminUrl}/decisions`)).json()) as { decisions: unknown[] }).decisions
      await conforms(route, revision)
      expect(await decisions()).toContainEqual(
        expect.objectContaining({ route, rules: expect.objectContaining({ allowed: true, rule: 'all' }) as unknown }),
      )
    },
    120_000,
  )
})
