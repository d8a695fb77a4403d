# frozen_string_literal: true

module Heddle
  module Options
    # Options of requests' bodies.
    BODIES = [
      Option.new(name: :stream_bodies, unit: :list, argument: "PATHS", none: "off", default: [],
                 example: 'stream_bodies "/uploads", "/grpc.Service"',
                 text: "paths whose request bodies the application reads during the upload: all, off, or a list of " \
                       "paths (each with all paths below it)",
                 reason: "Set it when responses begin before the request has ended (gRPC), or uploads are rejected " \
                         "early",
                 details: "For other requests the application is called when the body is complete, and reading it " \
                          "never waits. An application that reads a streamed body waits for the client, and in mode " \
                          "fiber other requests run meanwhile. A native library must not read a streamed body itself " \
                          "(Nokogiri::XML(env[\"rack.input\"])): read it into a String first."),
      Option.limit(:body_limit, :bytes, 67_108_864, 0,
                   text: "maximum size of a request body; a larger one gets 413",
                   reason: "Raise it when users upload larger files"),
      Option.limit(:body_disk_limit, :bytes, 4_294_967_296, 0,
                   text: "maximum total size of request bodies in files, over all processes; beyond it requests get " \
                         "503",
                   reason: "Raise it when many large uploads come at once; lower it when the folder for temporary " \
                           "files is on a small disk",
                   details: "The files are in the folder TMPDIR, or in the system's folder for temporary files; see " \
                            "[Request bodies](bodies.md). A single body above this limit gets 413."),
      Option.limit(:body_rate, :rate, 240, 0,
                   text: "minimum rate of a request body after its first 10 s; a slower one gets 408; 0 for no minimum",
                   reason: "Raise it when slow uploads occupy connections; lower it for very slow networks",
                   details: "A client that sends nothing for 60 s gets 408 at any rate. The same limits apply to a " \
                            "WebSocket message that has begun.")
    ].freeze
  end
end
