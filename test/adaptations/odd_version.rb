# frozen_string_literal: true

# A class with the name that a gem has, whose version RubyGems can't read.
class RedisClient
  VERSION = "custom build"
end
$LOADED_FEATURES << __FILE__
