# frozen_string_literal: true

require_relative "app"
require "rack/deflater"
require "rack/timeout/base"

use Rack::Deflater
use Rack::ETag
use Sentry::Rack::CaptureExceptions
use Rack::Timeout, service_timeout: 10
run Shop.freeze.app
