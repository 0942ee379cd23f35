import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import path from 'node:path'

// Gives dist/ (or the folder that is named), which runs under plain Node 24 with production dependencies only:
// `node dist/src/main.js`.
const root = path.join(import.meta.dirname, '..')
const folder = path.resolve(root, process.argv[2] ?? 'dist')
rmSync(folder, { recursive: true, force: true })
const compile = ['--project', 'tsconfig.build.json', '--outDir', folder]
const { status } = spawnSync(path.join(root, 'node_modules/.bin/tsc'), compile, { cwd: root, stdio: 'inherit' })
// The inspector's page is served as it is.
const page = 'src/inspect/page'
if (status === 0) cpSync(path.join(root, page), path.join(folder, page), { recursive: true })
process.exit(status ?? 1)
