'use strict'
var fs = require('fs')

/** Whether dist/ below `root` was made of the sources as they are now, by the size and time of each (scripts/build.ts writes them down). */
exports.isMadeOfThese = function (root) {
  try {
    var files = JSON.parse(fs.readFileSync(root + '/dist/sources.json', 'utf8'))
    return Object.keys(files).every(function (name) {
      var now = fs.statSync(root + '/' + name)
      return now.size === files[name][0] && now.mtimeMs === files[name][1]
    })
  } catch (error) {
    return false
  }
}
