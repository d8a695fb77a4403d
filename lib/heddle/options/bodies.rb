# frozen_string_literal: true

module Heddle
  module Options
    # Options of requests' bodies.
    BODIES = [
      Option.new(name: :stream_bodies, unit: :list, argument: "PATHS", none: "off", default: [],
                 example: 'stream_bodies "/uploads", "/grpc.Service"',
                 text: "paths at which the application reads request bodies during the upload: all, off or a list of " \
                       "paths (each includes all paths below it)",
                 reason: "Set it when the application responds before the request has ended (gRPC), or rejects " \
                         "uploads early",
                 details: "On other paths, Heddle calls the application when the body is complete, and reading the " \
                          "body never waits. An application that reads a streamed body waits for the client, and in " \
                          "mode fiber other requests run meanwhile. A native library must not read a streamed body " \
                          "itself (Nokogiri::XML(env[\"rack.input\"])): read it into a String first."),
      Option.limit(:body_limit, :bytes, 67_108_864, 0,
                   text: "maximum size of a request body; a larger one gets 413",
                   reason: "Raise it when users upload larger files"),
      Option.limit(:body_disk_limit, :bytes, 4_294_967_296, 0,
                   text: "maximum total size of the files in which all processes store request bodies; requests " \
                         "beyond it get 503",
                   reason: "Raise it when many large uploads come at once; lower it when the folder for temporary " \
                           "files is on a small disk",
                   details: "The files are in the folder that TMPDIR names, or in the system's folder for temporary " \
                            "files; see [Request bodies](bodies.md). A single body above this limit gets 413."),
      Option.limit(:body_rate, :rate, 240, 0,
                   text: "minimum rate at which a client must send a request body, after the first 10 s; a slower " \
                         "client gets 408; 0 for no minimum",
                   reason: "Raise it when slow uploads occupy connections; lower it for very slow networks",
                   details: "A client that sends nothing for 60 s gets 408, whatever body_rate is. The same limits " \
                            "apply to a WebSocket message that has begun.")
    ].freeze
  end
end
