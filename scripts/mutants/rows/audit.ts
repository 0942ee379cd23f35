import { within } from '../mutation.ts'

/** Guards of `src/audit`. */
export default [
  ...within(
    'src/audit/request-trace.ts',
    ['test/unit/audit/trail.test.ts'],
    [
      [
        'identity is of verified tokens only',
        "claims: caller?.kind === 'authenticated' ? caller.claims : undefined",
        "claims: JSON.parse(Buffer.from(String(this.#inbound.request.headers.authorization).split('.')[1] ?? '', 'base64url').toString())",
      ],
      ['fingerprints are keyed', "createHmac('sha256', key().bytes())", "createHmac('sha256', 'key')"],
      ['a token sent as a name is masked', 'return maskLooks(this.#secrets.maskIn(cut))', 'return cut'],
      [
        'refusals have events',
        'this.#trail.record(this.#event(status, reason, this.#chunks))',
        'if (!isDenied(status)) this.#trail.record(this.#event(status, reason, this.#chunks))',
      ],
      ['a response waits for its event', "if (written === 'written') return", 'return'],
      ['nothing is sent while events cannot be written', 'blocking.ready() : undefined', 'undefined : undefined'],
      [
        'fields named like secrets are masked',
        "if (name !== '' && SECRET_NAME.test(name)) return MASK",
        '',
        ['test/unit/audit/event.test.ts'],
      ],
      [
        'texts that look like tokens are masked in arguments',
        "typeof value === 'string' ? maskLooks(secrets.maskIn(value)) : value",
        'value',
        ['test/unit/audit/event.test.ts'],
      ],
      [
        'recorded arguments are bounded',
        'bytes > MAX_ARGUMENTS\n',
        'bytes > Infinity\n',
        ['test/unit/audit/event.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/audit/refusal-summary.ts',
    ['test/unit/audit/trail.test.ts', 'test/unit/audit/event.test.ts'],
    [
      ['refusals are counted', 'count.seen += 1', ''],
      ['refusals that were counted are reported', 'if (seen > SINGLE) this.#report', 'if (seen < 0) this.#report'],
    ],
  ),
  ...within(
    'src/audit/trail.ts',
    ['test/unit/audit/trail.test.ts'],
    [
      ['a short key is refused', 'if (fingerprintKey.bytes().length < LEAST_KEY_BYTES)', 'if (false)'],
      ['counted refusals are written at the end', '    trail.summaries.flush()\n', ''],
    ],
  ),
  ...within(
    'src/audit/trail-file.ts',
    ['test/unit/audit/trail.test.ts'],
    [
      [
        'a torn line is removed',
        '      if (this.#isRegular) dropTornLine(this.#fd)\n    } catch (cause)',
        '    } catch (cause)',
      ],
    ],
  ),
  ...within(
    'src/audit/trail-writer.ts',
    ['test/unit/audit/trail.test.ts'],
    [
      ['lost events are counted', 'if (lost.length > 0) this.#lose(lost.length)', ''],
      ['without room for its event a request is refused', 'reject(unavailable())', 'resolve()'],
    ],
  ),
  ...within(
    'src/audit/event.ts',
    ['test/unit/audit/event.test.ts'],
    [['texts of tokens are bounded', "value !== '' ? value.slice(0, MAX_TEXT)", "value !== '' ? value.slice(0)"]],
  ),
]
