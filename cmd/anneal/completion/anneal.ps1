# Completion of anneal for PowerShell: anneal completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName anneal -ScriptBlock {
    param($current, $ast, $cursor)
    $words = @($ast.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
    $command = $words[0]
    $before = @($words | Select-Object -Skip 1)
    & $command __complete @before "@$current" 2>$null | ForEach-Object {
        $text, $help = $_ -split "`t", 2
        if ($text -eq ':files') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($current)
        } else {
            if (-not $help) { $help = $text }
            [System.Management.Automation.CompletionResult]::new($text, $text, 'ParameterValue', $help)
        }
    }
}
