# frozen_string_literal: true

# The application that every server of bin/bench seeds serves. Compression and files are what applications use for
# them: Rack::Deflater, and the middleware with which Rails serves public files (see FilesAndJson).

require_relative "application" unless defined?(Bench::Seeds::Application)

use Rack::Deflater, if: ->(env, *) { env["PATH_INFO"].start_with?("/json/") }
run Bench::Seeds::Application.new
