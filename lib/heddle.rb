# frozen_string_literal: true

# Applications require this file, which also loads the railtie if Rails is loaded. The command `heddle` starts before
# Rails, so it requires only heddle/runtime. When Bundler requires this file later, after Rails, the railtie is loaded.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
