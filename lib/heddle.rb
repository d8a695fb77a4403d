# frozen_string_literal: true

# What an application requires. The command loads heddle/runtime alone, so that this file is still to be loaded when
# Bundler requires the gems of a Rails application, and Rails is there.
require "heddle/runtime"
require "heddle/railtie" if defined?(Rails::Railtie)
