# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/http"

module Heddle
  # Builds the env of a request, and sends what the application returns, as the Rack specification 3.2 defines. The
  # gem `rack` is not needed, because the specification uses only Ruby's own classes.
  #
  # @api private
  module Rack
    Autoloads.add(self, "heddle/rack")
  end
end

# Not loaded by autoload, because in Ruby 3.3 only the main Ractor can load files.
require "heddle/web_socket"
# Not loaded by autoload, because the first TLS client may connect when no descriptor is free to open the file.
require "heddle/rack/client_certificate"
# Not loaded by autoload, because the C extension has already defined the class.
require "heddle/rack/stream"
