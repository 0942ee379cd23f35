import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'

// Gives dist/, which runs under plain Node 24 with production dependencies only: `node dist/src/main.js`.
const root = path.join(import.meta.dirname, '..')
rmSync(path.join(root, 'dist'), { recursive: true, force: true })
const { status } = spawnSync(path.join(root, 'node_modules/.bin/tsc'), ['--project', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
process.exit(status ?? 1)
