import type { Mutation } from './mutation.ts'

const ANSWERS = ['test/obtain/xaa-answers.test.ts']
const SOURCE = ['test/obtain/xaa.test.ts']
const READER = 'src/obtain/id-jag.ts'

/** Type `xaa`: the caller whom the identity provider vouches for, and what it says of them. */
export const VOUCHED: readonly Mutation[] = [
  {
    rule: 'what the identity provider issued is an identity assertion',
    file: READER,
    find: "  if (members['issued_token_type'] !== ID_JAG_TYPE) throw malformed('issued_token_type is not that of an ID-JAG')\n",
    replace: '',
    tests: ANSWERS,
  },
  {
    rule: 'an assertion says that it is one',
    file: READER,
    find: 'jwtTypeOf(typ) !== ID_JAG)',
    replace: "jwtTypeOf(typ) === '')",
    tests: ANSWERS,
  },
  {
    rule: 'an assertion is for the target alone',
    file: READER,
    find: "oneOf(payload['aud']) !== wanted.audience",
    replace: "oneOf(payload['aud']) === undefined",
    tests: ANSWERS,
  },
  {
    rule: 'an assertion is for our client at the target',
    file: READER,
    find: "payload['client_id'] !== wanted.clientId",
    replace: "payload['client_id'] === null",
    tests: ANSWERS,
  },
  {
    rule: 'an assertion is for the resource that was asked for',
    file: READER,
    find: "oneOf(payload['resource']) !== wanted.resource",
    replace: "oneOf(payload['resource']) === null",
    tests: ANSWERS,
  },
  {
    rule: 'an assertion that was refused twice makes nobody log in again',
    file: READER,
    find: "    return code === 'invalid_token' ? 'exchange_denied' : code\n",
    replace: '    return code\n',
    tests: ANSWERS,
  },
  {
    rule: 'a caller’s own token is shown only where it was made for our client',
    file: READER,
    find: 'clientId === undefined || !audiences.includes(clientId)',
    replace: 'clientId === undefined',
    tests: SOURCE,
  },
  {
    rule: 'an access token is not shown as an ID token',
    file: 'src/obtain/xaa.ts',
    find: '        if (subject.keyParts(caller).length === 0) checkIdTokenHeader(token)\n',
    replace: '',
    tests: SOURCE,
  },
  {
    rule: 'what was got with the secret of one leg is dropped with that of the other',
    file: 'src/obtain/xaa.ts',
    find: 'secrets: [...clients.idp.secrets, ...clients.target.secrets],',
    replace: 'secrets: clients.idp.secrets,',
    tests: SOURCE,
  },
  {
    rule: 'who has to log in in another way is not refreshed, and told so',
    file: 'src/obtain/token-to-show.ts',
    find: ", 'insufficient_user_authentication'])",
    replace: '])',
    tests: SOURCE,
  },
]
