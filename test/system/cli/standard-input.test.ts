import type { ChildProcess } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { main } from '../../../src/cli/commands/index.ts'
import { spawnExtauth } from '../../support/e2e/process.ts'

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

const CONFIG = `apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: none }
spec: { type: unauthenticated }
---
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: p }
spec:
  auth: { mode: anonymous }
  routes: [{ name: r, path: /r, target: "http://127.0.0.1:9/mcp", externalAuthConfigRef: { name: none } }]
`

/** A command with this standard input, and what it printed. */
function withInput(args: readonly string[], input: string | Buffer) {
  const child = spawnExtauth(args, ['pipe', 'pipe', 'pipe'])
  started.push(child)
  const printed = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (printed.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (printed.stderr += chunk.toString()))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.stdin?.on('error', () => undefined).end(input)
  return { child, printed, ended }
}

const FREE = ['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']

describe('standard input as the configuration', () => {
  it('validate - validates it, with its lines', async () => {
    const good = withInput(['validate', '-'], CONFIG)
    expect(await good.ended).toBe(0)
    const bad = withInput(['validate', '-'], CONFIG.replace('routes:', 'rutes:'))
    expect(await bad.ended).toBe(1)
    expect(bad.printed.stdout).toMatch(/^<stdin>:11:3 {2}ProxyConfig\/p {2}spec\.rutes .*routes/m)
  })

  it('check - goes where its requests would go', async () => {
    const { ended, printed } = withInput(['check', '-'], CONFIG)
    expect(await ended).toBe(1)
    expect(printed.stdout).toContain('127.0.0.1:9')
    const twice = withInput(['check', '-', '--token-file', '-'], CONFIG)
    expect(await twice.ended).toBe(2)
  })

  it.each([[[]], [['--workers', '2']]])(
    'proxy --config - %j runs it, also after a reload',
    async (workers) => {
      const { child, printed, ended } = withInput(['proxy', '--config', '-', ...FREE, ...workers], CONFIG)
      const url = (): string => /proxy at (\S+),/.exec(printed.stdout)?.[1] ?? ''
      await expect.poll(url, { timeout: 20_000 }).toContain('http')
      expect((await fetch(`${url()}/r`, { method: 'POST' })).status).toBe(502)
      child.kill('SIGHUP')
      await expect.poll(() => printed.stderr, { timeout: 10_000 }).toContain('configuration reloaded')
      expect((await fetch(`${url()}/r`, { method: 'POST' })).status).toBe(502)
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    },
    40_000,
  )

  it('has a bound, which the refusal names', async () => {
    const { ended, printed } = withInput(['validate', '-'], Buffer.alloc(9 * 1024 * 1024, '#'))
    expect(await ended).toBe(1)
    expect(printed.stdout).toMatch(/<stdin>.*9437184 bytes, expected at most 8388608/)
  })
})

/** The output of `validate -` for this text, in this process. */
async function validated(text: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: '', stderr: '' }
  const code = await main(['validate', '-'], {
    stdout: (part) => void (said.stdout += part),
    stderr: (part) => void (said.stderr += part),
    env: {},
    stdin: () => Promise.resolve(text),
    stop: new Promise(() => {}),
    onReload: () => undefined,
  })
  return { code, ...said }
}

const deployment = (labels: string, annotations: string): string => `apiVersion: apps/v1
kind: Deployment
metadata: { name: server, namespace: n }
spec:
  template:
    metadata:
      labels: { app: server${labels} }
      annotations: {${annotations}}
    spec: { containers: [{ name: server, image: x }] }
`
const WANTED = ', extauth.dev/inject: "true"'
const FULL = 'extauth.dev/external-auth: a, extauth.dev/callers: c, extauth.dev/target-port: "9000"'

describe('annotations of pods', () => {
  it.each([
    ['that the webhook would take', deployment(WANTED, FULL), 0, /no MCPExternalAuthConfig "a" in namespace "n" among/],
    [
      'without a port',
      deployment(WANTED, FULL.replace(/, extauth.dev\/target.*/, '')),
      1,
      /^<stdin>:8:\d+ {2}Deployment\/server {2}spec\.template\.metadata\.annotations .*target-port is missing/m,
    ],
    [
      'whose label is not true',
      deployment(WANTED.replace('true', 'yes'), FULL),
      0,
      /the label .* is "yes": nothing is injected/,
    ],
    ['without the label', deployment('', FULL), 0, /warning: the pod is not injected: it lacks the label/],
    [
      'whose label has no quotes, which no API server takes',
      deployment(WANTED.replace('"true"', 'true'), FULL),
      1,
      /labels\["extauth.dev\/inject"\] {2}expected a string, in quotes: "true"/,
    ],
    [
      'whose port has no quotes',
      deployment(WANTED, FULL.replace('"9000"', '9000')),
      1,
      /annotations\["extauth.dev\/target-port"\] {2}expected a string, in quotes: "9000"\n(?!.*missing)/,
    ],
    [
      'that are misspelt',
      deployment(WANTED, `${FULL}, extauth.dev/calers: x`),
      // The webhook refuses it too.
      1,
      /unknown key "extauth.dev\/calers", did you mean "extauth.dev\/callers"/,
    ],
    [
      'for a config that cannot be beside a pod',
      `${deployment(WANTED, FULL)}---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: a, namespace: n }
spec: { type: upstreamInject, upstreamInject: { providerName: github } }
`,
      1,
      /"a" cannot run as a sidecar/,
    ],
  ])('%s', async (_name, text, code, expected) => {
    const said = await validated(text)
    expect(said.code).toBe(code)
    expect(said.stdout).toMatch(expected)
  })

  it('of another program are ignored', async () => {
    const { code, stderr } = await validated(deployment('', '') + `---\n${CONFIG}`)
    expect(code).toBe(0)
    expect(stderr).toContain('1 skipped')
  })
})
