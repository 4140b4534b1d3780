package jinja

import _ "anneal/internal/torture" // its flags
