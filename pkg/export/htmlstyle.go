package export

// htmlHead comes before the title. The page may show pictures that it brings
// along and nothing else: no script, no font, no request.
const htmlHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="drover">
`

const htmlStyle = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--mute:#777;--bad:#c33;--user:#2a6fdb}
*{box-sizing:border-box}
body{margin:0;font:16px/1.5 system-ui,sans-serif}
main{max-width:52rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem;margin:0;overflow-wrap:anywhere}
h2{font-size:.85rem;margin:0 0 .4rem;color:var(--mute);overflow-wrap:anywhere}
time{font-weight:normal}
article{margin:1rem 0;padding-left:.8rem;border-left:3px solid var(--line)}
article.user{border-color:var(--user)}
article.tool{border-color:transparent;margin:.3rem 0}
article.summary{background:var(--soft);padding:.6rem .8rem}
.text,pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
pre{font:.85rem/1.4 ui-monospace,monospace;background:var(--soft);padding:.6rem}
code{font:.85em ui-monospace,monospace;overflow-wrap:anywhere}
summary{cursor:pointer;overflow-wrap:anywhere}
summary code,header p,.mark{color:var(--mute)}
.failed>summary,p.failed{color:var(--bad)}
details.branch{border:1px dashed var(--line);padding:.4rem .8rem;margin:1rem 0}
img{max-width:100%;height:auto;display:block;margin:.4rem 0}
`
