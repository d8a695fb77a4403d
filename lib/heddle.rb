# frozen_string_literal: true

# Applications require this file, which also loads the railtie if Rails is loaded. The command `heddle` requires only
# heddle/runtime, because it starts before Rails. Later, after Rails, Bundler loads this file with the railtie.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
