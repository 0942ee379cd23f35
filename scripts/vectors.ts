import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { botocoreAuthorizations, installPython, systemPython } from './peers-python.ts'
import { signingCases } from './vectors-cases.ts'

// Records botocore's signatures of generated requests into test/vectors/botocore.json, which `npm test` replays.
const COUNT = 150
const PACKAGE = 'botocore==1.44.5'

const python = installPython([PACKAGE], (why) => process.stderr.write(`${why}\n`)) ?? systemPython()
if (python === undefined) {
  process.stderr.write('vectors: botocore can be had neither from PyPI nor from this system; nothing was written\n')
  process.exitCode = 1
} else {
  try {
    const cases = signingCases(COUNT)
    const { version, authorizations } = botocoreAuthorizations(python, cases)
    const vectors = cases.map((request, index) => ({ request, authorization: authorizations[index] }))
    const file = path.join(import.meta.dirname, '../test/vectors/botocore.json')
    writeFileSync(file, `${JSON.stringify({ source: `botocore ${version}, SigV4Auth`, cases: vectors }, null, 1)}\n`)
    process.stdout.write(`${vectors.length} signatures of botocore ${version} written\n`)
  } finally {
    python.close()
  }
}
