# frozen_string_literal: true

# Applications require this file. The command requires heddle/runtime instead, because it starts before Rails is loaded.
# So Bundler loads this file later, when Rails is there, and the railtie with it.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
