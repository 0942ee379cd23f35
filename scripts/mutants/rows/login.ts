import { within } from '../mutation.ts'

/** Guards of `src/login`. */
export default [
  ...within(
    'src/login/credentials.ts',
    ['test/system/login/again.test.ts', 'test/system/login/login.test.ts'],
    [
      ['a token is renewed before its end', 'end - EARLY_MS > now()', 'end + EARLY_MS > now()'],
      [
        'a token that another process has renewed is taken',
        'if (record !== undefined && record.access_token !== used && isFresh(record)) return record',
        '',
      ],
      ['a refused token is not taken again', 'record.access_token !== used && isFresh(record)', 'isFresh(record)'],
      [
        'a client unknown to the server is not used for a login',
        'isClientKnown: !isTried || next?.isClientKnown !== false',
        'isClientKnown: true',
        ['test/system/login/again.test.ts'],
      ],
      [
        'a client that the server may have deleted is registered again after a login without callback',
        'if (record !== undefined && !isTried) await store.forget(record)',
        '',
        ['test/system/login/again.test.ts'],
      ],
      [
        'a login that lacks scopes outlives one without callback',
        'record?.refresh_token !== undefined || asked.lacksScopes',
        'record?.refresh_token !== undefined',
        ['test/system/login/again.test.ts'],
      ],
      [
        'more scopes are no matter of a refresh',
        'record === undefined || asked.lacksScopes ? undefined',
        'record === undefined ? undefined',
      ],
      ['a background request opens no browser', 'if (!mayLogIn) return undefined', ''],
      [
        'a stream in the background opens no browser',
        'if (!mayAsk && running === undefined) {',
        'if (!mayAsk && failed !== undefined) {',
      ],
      [
        'a login that failed rests for a minute',
        'if (failed !== undefined && now() - failed.atMs < REST_MS) throw failed.error',
        '',
      ],
      ['and for no longer', 'now() - failed.atMs < REST_MS', 'now() - failed.atMs < REST_MS * 1000'],
      [
        'requests that are refused together wait for one login',
        'running ??= replace(used?.reveal(), asked)',
        'running = replace(used?.reveal(), asked)',
      ],
      ['a login that ended is not the one that others wait for', '.finally(() => (running = undefined))', ''],
      [
        'a token that cannot be renewed now serves until its end',
        '(record.expires_at_ms ?? 0) <= now()) throw error',
        'true) throw error',
      ],
      ['and no longer', '(record.expires_at_ms ?? 0) <= now()) throw error', 'false) throw error'],
      [
        'the login before is forgotten with another resource',
        'if (before !== undefined) await store.forget(before)',
        '',
      ],
      ['a renewed token is kept', 'await store.save(next.record)\n', ''],
    ],
  ),
  ...within(
    'src/oauth/resource-discovery.ts',
    ['test/system/login/discovery.test.ts'],
    [
      [
        'a login sends no secret over plain http',
        'if (!isSafeUrl(authorize) || !isSafeUrl(token))',
        'if (!isSafeUrl(authorize) || typeof token !== "string")',
      ],
      [
        'the metadata of an MCP server are about its own origin',
        'if (url === null || url.origin !== endpoint.origin) return false',
        'if (url === null) return false',
      ],
      [
        'and about a resource that the endpoint lies in, at a segment boundary',
        'inner.startsWith(`${outer}/`)',
        'inner.startsWith(outer)',
      ],
      [
        'metadata that name another resource are refused',
        "if (typeof resource !== 'string' || !coversEndpoint(resource, endpoint))",
        "if (typeof resource !== 'string')",
      ],
      ['the address of the metadata is https', 'if (named !== undefined && !isSafeUrl(named))', "if (named === '')"],
      ['the authorization server is https', 'if (!isSafeUrl(issuer)) throw', "if (issuer === '') throw"],
      [
        'its endpoints are https',
        'if (!isSafeUrl(authorize) || !isSafeUrl(token))',
        'if (authorize === undefined || token === undefined)',
      ],
      [
        'its token endpoint is https',
        'if (!isSafeUrl(authorize) || !isSafeUrl(token))',
        'if (!isSafeUrl(authorize) || token === undefined)',
      ],
      [
        'a server that does not announce PKCE with S256 is not used',
        "if (!isTextList(methods) || !methods.includes('S256'))",
        "if (isTextList(methods) && !methods.includes('S256'))",
      ],
      [
        'named metadata that cannot be read stop the login',
        `if (named !== undefined) throw refuse("the MCP server's metadata are unavailable")`,
        '',
      ],
      [
        'metadata are of the issuer that was asked for',
        "typeof named === 'string' && URL.parse(named)?.href === href",
        "typeof named === 'string' && href !== ''",
      ],
      [
        'insufficient_scope is read of a challenge',
        "parameter('error') === 'insufficient_scope'",
        "parameter('error') === 'invalid_token'",
        ['test/system/login/again.test.ts'],
      ],
      [
        'scopes of a challenge come before those of the metadata',
        'scopes: asked.scopes.length > 0 ? asked.scopes : advertised',
        'scopes: advertised',
      ],
      ['a scope is what RFC 6749 lets it be', 'scopesIn(scope).filter(isScope)', 'scopesIn(scope)'],
      [
        'a client is registered over https',
        'isSafeUrl(registration) ? registration : undefined',
        "textOf(document, 'registration_endpoint')",
        ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
      ],
      [
        'revocation goes to https',
        'isSafeUrl(revocation) ? revocation : undefined',
        "textOf(document, 'revocation_endpoint')",
        ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
      ],
      [
        'a metadata document is used where the server takes such',
        "document['client_id_metadata_document_supported'] === true",
        "document['client_id_metadata_document_supported'] !== undefined",
        ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/files/lock.ts',
    ['test/unit/login/parts.test.ts', 'test/slow/files/lock.test.ts'],
    [
      [
        'the lock is taken from one at a time',
        "if (error.code === 'EADDRINUSE') resolve(undefined)",
        "if (error.code === 'EADDRINUSE') resolve(server)",
      ],
      [
        'waiting for the lock ends',
        'if (leftMs <= 0 || signal?.aborted === true) throw new LockTimeout()',
        'if (signal?.aborted === true) throw new LockTimeout()',
      ],
      [
        'waiting for the lock ends with the signal',
        'if (leftMs <= 0 || signal?.aborted === true) throw new LockTimeout()',
        'if (leftMs <= 0) throw new LockTimeout()',
      ],
      [
        'the lock is released when the work throws',
        '  } finally {\n    await release()\n  }',
        '  } catch (error) {\n    throw error\n  }',
      ],
      [
        'the lock lies in the folder of its user',
        'path.resolve(directory, `${digest}.lock`)',
        'path.resolve(`/tmp/${digest}.lock`)',
      ],
      [
        'waiters are notified of the release of the lock',
        'for (const socket of waiters.get(held) ?? []) socket.destroy()',
        '',
      ],
    ],
  ),
  ...within(
    'src/login/login.ts',
    ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
    [
      [
        'an answer of the browser has the state of this login',
        "accepts: (answer) => answer.get('state') === state",
        "accepts: (answer) => answer.get('state') !== ''",
        ['test/system/login/login.test.ts'],
      ],
      [
        'the challenge is that of the verifier',
        "code_challenge: createHash('sha256').update(verifier).digest('base64url')",
        'code_challenge: verifier',
      ],
      ['the challenge is S256', "code_challenge_method: 'S256'", "code_challenge_method: 'plain'"],
      [
        'the authorization request names the resource',
        '      resource,\n      ...(wanted.length',
        '      ...(wanted.length',
      ],
      ['the token request names the resource', "    ['resource', resource],\n", ''],
      ['the port is released when the login is over', '    receiver.close()\n', '    await Promise.resolve()\n'],
      [
        'the client of before is used with the same server and resource only',
        'before?.issuer === server.issuer && before.resource === resource',
        'before !== undefined',
      ],
      [
        'the client of before is used with its own redirect URI only',
        'if (before?.redirect_uri === redirectUri) return before',
        'if (before !== undefined) return before',
      ],
      ['scopes of before are asked for again', 'isSame ? [...scopesIn(before.scope), ...scopes] : scopes', 'scopes'],
      [
        'a secret goes where the server takes it',
        '...(server.secretInBody ?',
        '...(server.issuer === undefined ?',
        ['test/system/login/discovery.test.ts'],
      ],
      [
        'a client registers in a way that the server offers',
        'token_endpoint_auth_method: server.authMethod',
        "token_endpoint_auth_method: 'none'",
        ['test/system/login/discovery.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/login/receiver.ts',
    ['test/unit/login/parts.test.ts'],
    [
      [
        'the receiver listens on loopback only',
        "server.listen(port, '127.0.0.1', () => {",
        "server.listen(port, '0.0.0.0', () => {",
      ],
      [
        'an answer of another login is passed over',
        'if (isOurs) resolve(url.searchParams)',
        'if (isAnswer) resolve(url.searchParams)',
        ['test/system/login/again.test.ts', 'test/system/login/login.test.ts'],
      ],
      [
        'an answer comes by GET',
        "request.method === 'GET' && url?.pathname === CALLBACK_PATH",
        'url?.pathname === CALLBACK_PATH',
      ],
      [
        'waiting for a person ends',
        "const timer = setTimeout(() => reject(new Error('the browser did not return')), options.patienceMs)",
        'const timer = undefined as NodeJS.Timeout | undefined',
        ['test/system/login/again.test.ts', 'test/system/login/login.test.ts'],
      ],
      ['waiting ends when the last request leaves', 'if (options.signal?.aborted === true) onAbort()', ''],
      ['an abort ends the waiting', "options.signal?.addEventListener('abort', onAbort, { once: true })", ''],
      [
        'a port that is taken gives way to another',
        '.catch(() => listening(server, 0))',
        '',
        ['test/system/login/again.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/oauth/resource-discovery.ts',
    ['test/system/login/discovery.test.ts', 'test/system/login/again.test.ts'],
    [
      [
        'plain http is for this machine',
        "(parsed.protocol === 'http:' && isLoopbackHost(parsed.hostname))",
        "parsed.protocol === 'http:'",
      ],
      [
        'an address with user information is not safe',
        "if (parsed === null || parsed.username !== '' || parsed.password !== '') return false",
        'if (parsed === null) return false',
      ],
    ],
  ),
  ...within(
    'src/files/private-file.ts',
    ['test/unit/login/parts.test.ts', 'test/system/login/login.test.ts', 'test/unit/storage/file.test.ts'],
    [
      ['only their owner can read the tokens', "open(fresh, 'wx', 0o600)", "open(fresh, 'wx', 0o644)"],
      ['a record is written whole or not at all', 'await rm(fresh, { force: true })', 'await Promise.resolve()'],
    ],
  ),
  ...within(
    'src/login/store.ts',
    ['test/unit/login/parts.test.ts', 'test/system/login/login.test.ts'],
    [
      [
        'only their owner can enter the folder of the tokens',
        'await chmod(directory, 0o700)',
        'await chmod(directory, 0o755)',
      ],
      ['a record that is too large is none', 'if (statSync(file).size > MAX_BYTES) return undefined', ''],
      [
        'what is no record is no login',
        "return RECORD.parse(JSON.parse(readFileSync(file, 'utf8')))",
        "return JSON.parse(readFileSync(file, 'utf8')) as LoginRecord",
      ],
      [
        'a login is for its endpoint',
        'find((record) => record.endpoint === endpoint)',
        'find((record) => record.endpoint.startsWith(endpoint.slice(0, 16)))',
      ],
    ],
  ),
  ...within(
    'src/login/tokens.ts',
    ['test/system/login/again.test.ts'],
    [
      [
        'a client that is not known any more means another login',
        'if (isRefused(response)) return endedBy(errorOf(response))\n',
        '',
        ['test/system/dialects/logins.test.ts'],
      ],
      ['a refresh is for the same resource', "      ['resource', resource],\n", ''],
      ['a dead grant leads to a login', "new Set(['invalid_grant', 'invalid_token'])", "new Set(['invalid_token'])"],
      [
        'a server that is away is no reason for a login',
        "    throw loginRefusal('the token refresh failed', error)",
        '    return undefined',
      ],
      [
        'the end of before is not the end of the new token',
        'const { expires_at_ms: _old, ...rest } = record',
        'const rest = record',
      ],
      [
        'the refresh token is revoked',
        "refresh !== undefined && (await end(refresh, 'refresh_token'))",
        'refresh !== undefined',
      ],
      [
        'so is the access token',
        "if (!(await end(access, 'access_token')) && !isRefreshEnded)",
        'if (!isRefreshEnded)',
      ],
    ],
  ),
]
