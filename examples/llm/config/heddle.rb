# frozen_string_literal: true

# A client that leaves also ends the request to the service, which would otherwise continue computing, and cost money.
cancel_on_disconnect :all
