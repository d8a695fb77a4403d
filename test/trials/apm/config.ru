# frozen_string_literal: true

# An application with the agent of one vendor, which APM names. A request for /?PHASE-NUMBER marks its transaction with
# that before it waits and after it, so that a mark of another request would show.

require_relative "vendors/#{ENV.fetch("APM")}"

use(*Vendor.middleware) if Vendor.respond_to?(:middleware)
Vendor.map(self) if Vendor.respond_to?(:map)

application = lambda do |env|
  mark = "mark<#{env["QUERY_STRING"]}>"
  Vendor.mark(:first, mark)
  sleep 0.2
  Vendor.mark(:second, mark)
  [200, {}, ["ok"]]
end
run(Vendor.respond_to?(:wrap) ? Vendor.wrap(application) : application)
