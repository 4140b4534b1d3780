package main

import "os"

// saveSignal does not exist on Windows.
var saveSignal os.Signal

// abortOnCrash does nothing on Windows.
func abortOnCrash() {}
