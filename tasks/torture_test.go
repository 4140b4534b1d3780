package tasks

import _ "anneal/internal/torture" // its flags
