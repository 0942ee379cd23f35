import { readFileSync } from 'node:fs'
import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { authConfig, proxyConfig } from '../../support/e2e/run.ts'
import { runWorkersProcess } from '../../support/e2e/workers.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const FILES = {
  'none.json': authConfig('none', { type: 'unauthenticated' }),
  'proxy.json': proxyConfig({
    auth: { mode: 'anonymous' },
    routes: [{ name: 'one', path: '/one', target: 'http://127.0.0.1:1/mcp', externalAuthConfigRef: { name: 'none' } }],
  }),
}
const EIGHT = '--max-semi-space-size=8'

/** Options of Node that each worker was started with. */
async function optionsOfWorkers(env: Readonly<Record<string, string>>): Promise<readonly (readonly string[])[]> {
  const proxy = await runWorkersProcess(sockets, FILES, { env })
  return (await proxy.pids()).map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0'))
}

it('workers get a smaller young generation than the default of Node', async () => {
  const options = await optionsOfWorkers({})
  expect(options).toHaveLength(2)
  for (const each of options) expect(each).toContain(EIGHT)
})

it('workers get the configured young generation', async () => {
  for (const each of await optionsOfWorkers({ NODE_OPTIONS: '--max_semi_space_size=4' }))
    expect(each).not.toContain(EIGHT)
})
