package dash

import _ "anneal/internal/torture" // its flags: go test gives them to every package
