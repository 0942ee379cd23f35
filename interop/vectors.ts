import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { botocoreAuthorizations, installPython, missingPyPI, systemPython } from './python.ts'
import { s3SigningCases, signingCases } from './vectors-cases.ts'

// Records botocore's signatures of generated requests into test/vectors/, which `npm test` replays.
const COUNT = 150
const PACKAGE = 'botocore==1.44.5'
const FILES = [
  { file: 'botocore.json', signer: 'SigV4Auth', cases: signingCases(COUNT) },
  { file: 'botocore-s3.json', signer: 'S3SigV4Auth', cases: s3SigningCases(COUNT) },
]

const python = missingPyPI(PACKAGE) === undefined ? installPython([PACKAGE]) : systemPython()
if (python === undefined) {
  process.stderr.write('vectors: botocore can be had neither from PyPI nor from this system; nothing was written\n')
  process.exitCode = 1
} else {
  try {
    for (const { file, signer, cases } of FILES) {
      const { version, authorizations } = botocoreAuthorizations(python, cases)
      const vectors = cases.map((request, index) => ({ request, authorization: authorizations[index] }))
      const text = JSON.stringify({ source: `botocore ${version}, ${signer}`, cases: vectors }, null, 1)
      writeFileSync(path.join(import.meta.dirname, '../test/vectors', file), `${text}\n`)
      process.stdout.write(`${vectors.length} signatures of botocore ${version} written\n`)
    }
  } finally {
    python.close()
  }
}
