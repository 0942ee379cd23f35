import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { expect, it } from 'vitest'

const MODULE = path.join(import.meta.dirname, '../../../src/http/http-date.ts')
const FORMS = ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994']

it('is the same time in each of its forms, wherever the machine is', () => {
  const code = `import { parseHttpDate } from ${JSON.stringify(MODULE)}; console.log(${JSON.stringify(FORMS)}.map(parseHttpDate).join())`
  for (const TZ of ['UTC', 'America/New_York', 'Asia/Kolkata']) {
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { env: { ...process.env, TZ } })
    expect(output.toString().trim()).toBe('784111777000,784111777000,784111777000')
  }
})
