"""Values: units, expressions, functions of time, place and temperature."""
