import { spawn } from 'node:child_process'
import path from 'node:path'
import { parseArgs } from 'node:util'

// Runs the tests against a real Kubernetes API server. --record writes the verdicts that `npm test` replays; --scale runs the
// tests of thousands of objects instead, which take minutes, --install those with Helm and tools of GitOps, which are built with
// Go; anything else goes to vitest.
const { values, tokens } = parseArgs({
  args: process.argv.slice(2),
  options: { record: { type: 'boolean' }, scale: { type: 'boolean' }, install: { type: 'boolean' } },
  strict: false,
  allowPositionals: true,
  tokens: true,
})
const rest = process.argv
  .slice(2)
  .filter(
    (argument) =>
      !tokens.some(
        (token) =>
          token.kind === 'option' && ['record', 'scale', 'install'].includes(token.name) && token.rawName === argument,
      ),
  )
const root = path.join(import.meta.dirname, '..')
const vitest = path.join(root, 'node_modules/vitest/vitest.mjs')
const child = spawn(
  process.execPath,
  [vitest, 'run', '--retry', '2', '--config', 'vitest.cluster.config.ts', ...rest],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      EXTAUTH_RECORD: String(values.record === true),
      EXTAUTH_SCALE: String(values.scale === true),
      EXTAUTH_INSTALL: String(values.install === true),
    },
  },
)
child.once('exit', (code) => {
  process.exitCode = code ?? 1
})
