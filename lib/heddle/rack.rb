# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/http"

module Heddle
  # Makes the env of a request, and the bytes of a response, by the specification of Rack 3.2. The gem `rack` is not
  # needed here: the specification is about plain Ruby objects.
  #
  # @api private
  module Rack
    Autoloads.add(self, "heddle/rack")
  end
end

# Loaded now and not by autoload, because a Ractor of Ruby 3.3 can't load files.
require "heddle/web_socket"
# Loaded now and not by autoload, because a TLS client may come when there is no descriptor left to load code with.
require "heddle/rack/client_certificate"
# Not by autoload: the extension has defined the class.
require "heddle/rack/stream"
